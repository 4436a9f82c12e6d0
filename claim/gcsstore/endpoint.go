package gcsstore

import (
	"strings"

	"github.com/ankusa-connect/ankusa-connect/claim"
	"github.com/ankusa-connect/ankusa-connect/classify"
)

// DefaultEndpoint is Google's.
const DefaultEndpoint = "https://storage.googleapis.com"

// EmulatorVariable is the environment variable by which Google's libraries name an emulator.
const EmulatorVariable = "STORAGE_EMULATOR_HOST"

// resolveEndpoint returns scheme and host of the server: what the options say, else the emulator
// that the environment names in any of the usual spellings (localhost:4443, :4443, [::1]:4443,
// http://localhost:4443/), else Google. token tells whether a token may be sent there.
func resolveEndpoint(explicit string, getenv func(string) string) (endpoint string, token bool, err error) {
	if explicit != "" {
		endpoint, err = claim.CheckEndpoint(explicit)
		if err != nil {
			return "", false, classify.Configf(Service, "invalid_option", "endpoint: %w", err)
		}
		return endpoint, strings.HasPrefix(endpoint, "https://"), nil
	}
	host := strings.TrimSpace(getenv(EmulatorVariable))
	if host == "" {
		return DefaultEndpoint, true, nil
	}
	if strings.HasPrefix(host, ":") && !strings.HasPrefix(host, "::") {
		host = "localhost" + host
	}
	if !strings.Contains(host, "://") {
		host = "http://" + host
	}
	if endpoint, err = claim.CheckEndpoint(host); err != nil {
		return "", false, classify.Configf(Service, "invalid_option", "environment variable %s: %w", EmulatorVariable, err)
	}
	return endpoint, false, nil
}
