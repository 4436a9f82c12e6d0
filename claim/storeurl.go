package claim

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Schemes of a StoreURL.
const (
	SchemeS3    = "s3"
	SchemeGCS   = "gs"
	SchemeDir   = "dir"
	SchemeCache = "cache"
)

// StoreURL says where claims are stored. Its text is one of
//
//	s3://bucket[?region=REGION&endpoint=URL&path_style=BOOL]
//	gs://bucket
//	dir:///absolute/path
//	cache:label
//
// It holds no credentials: a store uses those of the output that it serves.
type StoreURL struct {
	Scheme string // one of the Scheme constants
	Bucket string // s3, gs
	Path   string // dir: absolute and clean
	Label  string // cache: of a Benthos cache resource

	Region    string // s3; empty is the output's
	Endpoint  string // s3: scheme and host, without a slash at the end; empty is AWS's own
	PathStyle *bool  // s3: whether the bucket stands in the path; nil is yes where an endpoint is set
}

// ParseStoreURL reads the text of a StoreURL. The error says what is wrong and, where there is one
// obvious thing that was meant, what to write.
func ParseStoreURL(s string) (StoreURL, error) {
	u, err := parseStoreURL(s)
	if err != nil {
		return StoreURL{}, fmt.Errorf("claim store: %w", err)
	}
	return u, nil
}

func parseStoreURL(s string) (StoreURL, error) {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok {
		return StoreURL{}, errors.New("want s3://bucket, gs://bucket, dir:///path or cache:label")
	}
	switch scheme {
	case SchemeS3, SchemeGCS, SchemeDir:
	case SchemeCache:
		return parseCache(rest)
	default:
		return StoreURL{}, fmt.Errorf("unknown scheme %q: want s3://bucket, gs://bucket, dir:///path or cache:label", scheme)
	}
	rest, ok = strings.CutPrefix(rest, "//")
	if !ok {
		return StoreURL{}, fmt.Errorf("%s: must be followed by two slashes", scheme)
	}
	if strings.Contains(rest, "#") {
		return StoreURL{}, errors.New("a # has no meaning here; in an option's value write %23")
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery && scheme != SchemeS3 {
		return StoreURL{}, fmt.Errorf("%s:// takes no options", scheme)
	}
	if scheme == SchemeDir {
		return parseDir(rest)
	}
	bucket, prefix, _ := strings.Cut(rest, "/")
	if prefix != "" {
		return StoreURL{}, fmt.Errorf("%s://%s is followed by a path; objects go under claims/ and take no other prefix, because readers derive the key from the claim alone", scheme, bucket)
	}
	if err := checkBucket(bucket); err != nil {
		return StoreURL{}, err
	}
	u := StoreURL{Scheme: scheme, Bucket: bucket}
	return u, u.parseOptions(query)
}

func parseCache(label string) (StoreURL, error) {
	if strings.HasPrefix(label, "//") {
		return StoreURL{}, errors.New("cache: is followed by a label without slashes, as in cache:claims")
	}
	if label == "" || strings.ContainsFunc(label, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) {
		return StoreURL{}, fmt.Errorf("cache: is followed by the label of a cache resource (letters, digits and underscores), not %q", label)
	}
	return StoreURL{Scheme: SchemeCache, Label: label}, nil
}

func parseDir(dir string) (StoreURL, error) {
	if !strings.HasPrefix(dir, "/") {
		return StoreURL{}, fmt.Errorf("dir:// is followed by an absolute path, as in dir:///var/lib/claims, not %q", dir)
	}
	// A path is taken as it stands: who has a percent sign in a directory's name means that sign.
	dir = path.Clean(dir)
	if dir == "/" {
		return StoreURL{}, errors.New("dir:/// names no directory")
	}
	if strings.ContainsRune(dir, 0) {
		return StoreURL{}, errors.New("a path can't hold a NUL")
	}
	return StoreURL{Scheme: SchemeDir, Path: dir}, nil
}

// checkBucket refuses what can't be a bucket on any of the services, old names and foreign servers
// included. It keeps a name from becoming another host or path; whether it is a good name the
// service decides.
func checkBucket(bucket string) error {
	if strings.Contains(bucket, "@") {
		return errors.New("credentials don't belong here; a store uses those of its output") // not quoted
	}
	if len(bucket) < 3 || len(bucket) > 255 || strings.ContainsFunc(bucket, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	}) || bucket[0] == '.' || bucket[len(bucket)-1] == '.' || strings.Contains(bucket, "..") {
		return fmt.Errorf("%q is no bucket's name (3 or more letters, digits, dots, hyphens and underscores)", bucket)
	}
	return nil
}

func (u *StoreURL) parseOptions(query string) error {
	options, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("options: %w", err)
	}
	// In order, so that of several mistakes the same one is told each time.
	names := make([]string, 0, len(options))
	for name := range options {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if len(options[name]) > 1 {
			return fmt.Errorf("option %s is given twice", name)
		}
		value := options[name][0]
		switch name {
		case "region":
			if !validRegion(value) {
				return fmt.Errorf("option region: %q is no region", value)
			}
			u.Region = value
		case "endpoint":
			if u.Endpoint, err = CheckEndpoint(value); err != nil {
				return fmt.Errorf("option endpoint: %w", err)
			}
		case "path_style":
			b, err := strconv.ParseBool(value)
			if err != nil {
				return fmt.Errorf("option path_style: want true or false, not %q", value)
			}
			u.PathStyle = &b
		default:
			return fmt.Errorf("unknown option %q: s3:// takes region, endpoint and path_style", name)
		}
	}
	return nil
}

func validRegion(s string) bool {
	return s != "" && len(s) <= 63 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// CheckEndpoint reports whether s is the address of a server, http or https with a host and
// nothing behind it but a slash, and returns it without that slash.
func CheckEndpoint(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", errors.New("not a URL") // err would quote it, and it may hold a password
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "" || u.Hostname() == "":
		return "", errors.New("must begin with http:// or https:// and a host")
	case u.User != nil:
		return "", errors.New("must not hold a user or password")
	case u.Path != "" && u.Path != "/", u.RawQuery != "" || u.ForceQuery, u.Fragment != "":
		return "", errors.New("must end after the host and port")
	}
	return u.Scheme + "://" + u.Host, nil
}

// String returns the text that ParseStoreURL reads.
func (u StoreURL) String() string {
	switch u.Scheme {
	case SchemeDir:
		return "dir://" + u.Path
	case SchemeCache:
		return "cache:" + u.Label
	}
	options := url.Values{}
	if u.Region != "" {
		options.Set("region", u.Region)
	}
	if u.Endpoint != "" {
		options.Set("endpoint", u.Endpoint)
	}
	if u.PathStyle != nil {
		options.Set("path_style", strconv.FormatBool(*u.PathStyle))
	}
	s := u.Scheme + "://" + u.Bucket
	if len(options) > 0 {
		s += "?" + options.Encode()
	}
	return s
}
