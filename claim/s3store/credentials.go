package s3store

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

// credentials passes the output's credentials to the SDK. It gives their failures a class, and
// remembers which ones a request used: by the time S3 says that they are expired, the source may
// have newer ones, which must not be thrown away.
type credentials struct {
	source aws.CredentialsProvider
}

type usedKey struct{}

// watch returns a context for one request, and where the credentials that it uses will be noted.
func (c *credentials) watch(ctx context.Context) (*aws.Credentials, context.Context) {
	used := new(aws.Credentials)
	return used, context.WithValue(ctx, usedKey{}, used)
}

// Retrieve implements aws.CredentialsProvider.
func (c *credentials) Retrieve(ctx context.Context) (aws.Credentials, error) {
	got, err := c.source.Retrieve(ctx)
	if err != nil {
		if _, ok := errors.AsType[*classify.Error](err); ok {
			return aws.Credentials{}, err
		}
		return aws.Credentials{}, classify.Transientf(Service, "no_credentials", "%w", err)
	}
	if used, ok := ctx.Value(usedKey{}).(*aws.Credentials); ok {
		*used = got
	}
	return got, nil
}

// invalidate drops the credentials, and reports whether that may have helped.
func (c *credentials) invalidate(used aws.Credentials) bool {
	source, ok := c.source.(interface{ Invalidate(aws.Credentials) })
	if !ok || !used.HasKeys() {
		return false
	}
	source.Invalidate(used)
	return true
}
