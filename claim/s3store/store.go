package s3store

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
	"github.com/ankusa-connect/ankusa-connect/wire"
)

// Service is the name that errors of this package bear.
const Service = "s3"

// chunk is how much of an object one request reads; a whole reply must fit wire.MaxReplyBytes.
const chunk = 512 << 10

// Options configure a Store.
type Options struct {
	// Credentials sign the requests. Required. They are asked for each request, so they should
	// cache. If they have a method Invalidate(aws.Credentials), it is called with credentials that
	// S3 said are expired. Errors of Retrieve that are *classify.Error keep their class; others are
	// transient, no_credentials.
	Credentials aws.CredentialsProvider
	// Region is the bucket's region where the URL names none. One of the two is required.
	Region string
	// Timeout limits the connection's coming about, the reply (counted from the last byte written)
	// and every stall while the object is written. Zero means wire.DefaultTimeout.
	Timeout time.Duration
	// TLS is the base of the TLS configuration; nil means Go's defaults.
	TLS *tls.Config
	// MaxIdleConns is how many idle connections are kept; at least the number of Puts at once.
	// Zero means wire's default.
	MaxIdleConns int
	// Getenv looks up the environment, for AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL. Nil is
	// os.Getenv.
	Getenv func(string) string
}

// Store is a claim.Store and claim.RangeReader over one bucket.
type Store struct {
	bucket      string
	region      string
	client      *s3.Client
	wire        *wire.Client
	credentials *credentials
}

var (
	_ claim.Store       = (*Store)(nil)
	_ claim.RangeReader = (*Store)(nil)
)

// New returns a Store over u's bucket, whose scheme must be s3. It checks what it is given, and
// neither dials nor asks for credentials. An error is config.
func New(u claim.StoreURL, o Options) (*Store, error) {
	if u.Scheme != claim.SchemeS3 {
		return nil, classify.Configf(Service, "invalid_option", "%s is not an s3:// store", u)
	}
	if o.Credentials == nil {
		return nil, classify.Configf(Service, "invalid_option", "%s: no source of credentials is set", u)
	}
	region := cmp.Or(u.Region, o.Region)
	if region == "" {
		return nil, classify.Configf(Service, "invalid_option", "%s: the bucket's region is not known: add ?region=", u)
	}
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	endpoint, err := resolveEndpoint(u.Endpoint, getenv)
	if err != nil {
		return nil, err
	}
	// Servers other than AWS are reached by an address, which has no names below it.
	pathStyle := endpoint != ""
	if u.PathStyle != nil {
		pathStyle = *u.PathStyle
	}
	s := &Store{
		bucket:      u.Bucket,
		region:      region,
		credentials: &credentials{source: o.Credentials},
		wire: wire.New(wire.Options{
			Service:             Service,
			Timeout:             o.Timeout,
			TLS:                 o.TLS,
			MaxIdleConnsPerHost: o.MaxIdleConns,
		}),
	}
	options := s3.Options{
		Region:       region,
		UsePathStyle: pathStyle,
		Credentials:  s.credentials,
		HTTPClient:   &transport{wire: s.wire},
		Retryer:      aws.NopRetryer{},
		// The checksum is ours, known before the request: one that trails the body in chunks is
		// what other servers trip over.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
		// "Expect: 100-continue" costs a round trip, and servers that ignore it a second.
		ContinueHeaderThresholdBytes: -1,
	}
	if endpoint != "" {
		options.BaseEndpoint = &endpoint
	}
	s.client = s3.New(options)
	return s, nil
}

// resolveEndpoint returns the address of the server, empty for AWS's own: what the URL says, else
// what the environment says to every AWS client.
func resolveEndpoint(explicit string, getenv func(string) string) (string, error) {
	if explicit != "" {
		return explicit, nil
	}
	if strings.EqualFold(getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
		return "", nil
	}
	for _, name := range [...]string{"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"} {
		value := strings.TrimSpace(getenv(name))
		if value == "" {
			continue
		}
		endpoint, err := claim.CheckEndpoint(value)
		if err != nil {
			return "", classify.Configf(Service, "invalid_option", "environment variable %s: %w", name, err)
		}
		return endpoint, nil
	}
	return "", nil
}

// Put implements claim.Store.
func (s *Store) Put(ctx context.Context, o *claim.Object) error {
	h := crc32.NewIEEE()
	o.Sum(h)
	sum := base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, h.Sum32()))
	return s.attempt(ctx, "put", o.Key(), func(ctx context.Context) error {
		out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket:        &s.bucket,
			Key:           aws.String(o.Key()),
			Body:          o.Reader(),
			ContentLength: aws.Int64(o.Size()),
			ContentType:   aws.String(claim.ContentType),
			ChecksumCRC32: &sum,
		})
		if err != nil {
			return err
		}
		// A server that knows no checksums says nothing of one. Some word of the object it must
		// have: a proxy's page is a 200 too.
		if aws.ToString(out.ETag) == "" {
			return &classify.Error{Service: Service, Status: 200, Code: "unexpected_reply", Message: fmt.Sprintf("the answer to a put of %s names no object", o.Key())}
		}
		if got := aws.ToString(out.ChecksumCRC32); got != "" && got != sum {
			return &classify.Error{Service: Service, Status: 200, Code: "checksum_mismatch", Message: fmt.Sprintf("%s was stored with CRC-32 %s, sent with %s", o.Key(), got, sum)}
		}
		return nil
	})
}

// ReadRange implements claim.RangeReader.
func (s *Store) ReadRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	var all []byte
	for int64(len(all)) < length {
		from := offset + int64(len(all))
		n := min(length-int64(len(all)), chunk)
		var got []byte
		err := s.attempt(ctx, "get", key, func(ctx context.Context) error {
			out, err := s.client.GetObject(ctx, &s3.GetObjectInput{
				Bucket: &s.bucket,
				Key:    &key,
				Range:  aws.String(fmt.Sprintf("bytes=%d-%d", from, from+n-1)),
			})
			if err != nil {
				return err
			}
			defer out.Body.Close()
			got, err = claim.ReadAtMost(out.Body, n+1)
			if int64(len(got)) > n {
				return &classify.Error{Service: Service, Status: 200, Code: "unexpected_reply", Message: "the server ignores ranges"}
			}
			return err
		})
		if e := classify.Of(err); e != nil {
			if e.Status == 416 { // nothing behind the end
				return all, nil
			}
			return nil, e
		}
		all = append(all, got...)
		if int64(len(got)) < n {
			break
		}
	}
	return all, nil
}

// Check implements claim.Store.
func (s *Store) Check(ctx context.Context) error {
	probe := claim.Probe()
	if err := s.Put(ctx, probe); err != nil {
		return err
	}
	err := s.attempt(ctx, "delete", probe.Key(), func(ctx context.Context) error {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(probe.Key())})
		return err
	})
	if err != nil {
		return &claim.LeftoverError{Key: probe.Key(), Err: err}
	}
	return nil
}

// Close implements claim.Store. Requests still under way are ended.
func (s *Store) Close(context.Context) error {
	s.wire.Close()
	return nil
}

// attempt runs one request, and once more if the credentials that it used had expired.
func (s *Store) attempt(ctx context.Context, action, key string, do func(context.Context) error) error {
	for again := true; ; again = false {
		used, attemptCtx := s.credentials.watch(ctx)
		err := do(attemptCtx)
		if err == nil {
			return nil
		}
		e := s.fail(err, action, key)
		if again && isExpired(e.Code) && s.credentials.invalidate(*used) && ctx.Err() == nil {
			continue
		}
		return e
	}
}
