package claim

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseStoreURL(t *testing.T) {
	for _, tc := range []struct {
		in   string
		want StoreURL
	}{
		{"s3://claims", StoreURL{Scheme: "s3", Bucket: "claims"}},
		{"s3://claims/", StoreURL{Scheme: "s3", Bucket: "claims"}},
		{"s3://my.Old_bucket-1", StoreURL{Scheme: "s3", Bucket: "my.Old_bucket-1"}},
		{"s3://claims?region=eu-west-1", StoreURL{Scheme: "s3", Bucket: "claims", Region: "eu-west-1"}},
		{"s3://claims?endpoint=http://localhost:9000/&path_style=false", StoreURL{Scheme: "s3", Bucket: "claims", Endpoint: "http://localhost:9000", PathStyle: new(false)}},
		{"s3://claims?endpoint=https%3A%2F%2F[::1]:9000&path_style=true&region=us-east-1", StoreURL{Scheme: "s3", Bucket: "claims", Region: "us-east-1", Endpoint: "https://[::1]:9000", PathStyle: new(true)}},
		{"gs://claims_of.example.com", StoreURL{Scheme: "gs", Bucket: "claims_of.example.com"}},
		{"dir:///var/lib/claims", StoreURL{Scheme: "dir", Path: "/var/lib/claims"}},
		{"dir:///var//lib/../claims/", StoreURL{Scheme: "dir", Path: "/var/claims"}},
		{"dir:///tmp/a b/50%", StoreURL{Scheme: "dir", Path: "/tmp/a b/50%"}},
		{"cache:claims_1", StoreURL{Scheme: "cache", Label: "claims_1"}},
	} {
		got, err := ParseStoreURL(tc.in)
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("ParseStoreURL(%q) = %+v, %v, want %+v", tc.in, got, err, tc.want)
		}
		again, err := ParseStoreURL(got.String())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%q prints as %q, which parses as %+v, %v", tc.in, got, again, err)
		}
	}
}

func TestParseStoreURLSaysWhatIsWrong(t *testing.T) {
	for _, tc := range []struct{ in, says string }{
		{"", "want s3://bucket"},
		{"claims", "want s3://bucket"},
		{"file:///tmp", `unknown scheme "file"`},
		{"S3://claims", `unknown scheme "S3"`},
		{"s3:claims", "two slashes"},
		{"s3://", "no bucket's name"},
		{"s3://ab", "no bucket's name"},
		{"s3://a..b", "no bucket's name"},
		{"s3://.abc", "no bucket's name"},
		{"s3://u:p@bucket", "credentials"},
		{"s3://bucket:80", "no bucket's name"},
		{"s3://bücket", "no bucket's name"},
		{"s3://claims/prefix", "no other prefix"},
		{"s3://claims?regoin=eu-west-1", `unknown option "regoin"`},
		{"s3://claims?region=", "no region"},
		{"s3://claims?region=EU-West-1", "no region"},
		{"s3://claims?region=a&region=b", "given twice"},
		{"s3://claims?region=%zz", "options"},
		{"s3://claims?endpoint=localhost:9000", "http:// or https://"},
		{"s3://claims?endpoint=http://", "http:// or https://"},
		{"s3://claims?endpoint=http://:9000", "http:// or https://"},
		{"s3://claims?endpoint=ftp://x", "http:// or https://"},
		{"s3://claims?endpoint=http://host/path", "end after the host"},
		{"s3://claims?endpoint=http://u:p@host", "user or password"},
		{"s3://claims?path_style=yes", "true or false"},
		{"s3://claims#x", "#"},
		{"gs://claims?region=x", "no options"},
		{"gs://claims/x", "no other prefix"},
		{"dir:/tmp", "two slashes"},
		{"dir://tmp/x", "absolute path"},
		{"dir://", "absolute path"},
		{"dir:///", "no directory"},
		{"dir:///..", "no directory"},
		{"dir:///tmp?x=1", "no options"},
		{"dir:///tmp/\x00", "NUL"},
		{"cache:", "label"},
		{"cache://claims", "without slashes"},
		{"cache:a b", "label"},
	} {
		u, err := ParseStoreURL(tc.in)
		if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.HasPrefix(err.Error(), "claim store: ") {
			t.Errorf("ParseStoreURL(%q) = %+v, %v, want an error that says %q", tc.in, u, err, tc.says)
		}
		if err != nil && strings.Contains(err.Error(), "u:p@") {
			t.Errorf("ParseStoreURL(%q) quotes the password: %v", tc.in, err)
		}
	}
}

func FuzzParseStoreURL(f *testing.F) {
	f.Add("s3://claims?endpoint=http://localhost:9000&path_style=false")
	f.Add("dir:///tmp/../x")
	f.Add("cache:claims")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseStoreURL(s)
		if err != nil {
			return
		}
		again, err := ParseStoreURL(u.String())
		if err != nil || !reflect.DeepEqual(again, u) {
			t.Errorf("%q prints as %q, which parses as %+v, %v, want %+v", s, u, again, err, u)
		}
	})
}
