package pubsub

import (
	"strings"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/classify"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestResolveEndpoint(t *testing.T) {
	tests := []struct {
		name, explicit, emulator string
		want                     Endpoint
		refused                  string
	}{
		{"nothing set", "", "", Endpoint{DefaultEndpoint, false, "default"}, ""},
		{"emulator variable of spaces", "", " ", Endpoint{DefaultEndpoint, false, "default"}, ""},
		{"host:port", "", "localhost:8085", Endpoint{"http://localhost:8085", true, EmulatorVariable}, ""},
		{"scheme and slash", "", "http://localhost:8085/", Endpoint{"http://localhost:8085", true, EmulatorVariable}, ""},
		{"upper-case scheme", "", "HTTP://pubsub:8085", Endpoint{"http://pubsub:8085", true, EmulatorVariable}, ""},
		{"IPv6", "", "[::1]:8085", Endpoint{"http://[::1]:8085", true, EmulatorVariable}, ""},
		{"another host", "", "pubsub-emulator:8085", Endpoint{"http://pubsub-emulator:8085", true, EmulatorVariable}, ""},
		{"port only", "", ":8085", Endpoint{"http://localhost:8085", true, EmulatorVariable}, ""},
		{"spaces around", "", " localhost:8085\n", Endpoint{"http://localhost:8085", true, EmulatorVariable}, ""},
		{"https emulator", "", "https://localhost:8085", Endpoint{}, EmulatorVariable},
		{"IPv6 without brackets", "", "::1:8085", Endpoint{}, EmulatorVariable},
		{"no host", "", "http://", Endpoint{}, EmulatorVariable},
		{"not a port", "", "localhost:port", Endpoint{}, EmulatorVariable},

		{"explicit wins", "https://eu-pubsub.example", "localhost:8085", Endpoint{"https://eu-pubsub.example", false, "endpoint"}, ""},
		{"regional, as in gcp_pubsub", "us-east1-pubsub.googleapis.com:443", "", Endpoint{"https://us-east1-pubsub.googleapis.com:443", false, "endpoint"}, ""},
		{"no port", "us-east1-pubsub.googleapis.com", "", Endpoint{"https://us-east1-pubsub.googleapis.com", false, "endpoint"}, ""},
		{"loopback without a scheme is an emulator", "localhost:4588", "", Endpoint{"http://localhost:4588", true, "endpoint"}, ""},
		{"and by address", "127.0.0.1:4588", "", Endpoint{"http://127.0.0.1:4588", true, "endpoint"}, ""},
		{"and by IPv6 address", "[::1]:4588", "", Endpoint{"http://[::1]:4588", true, "endpoint"}, ""},
		{"path and slash", "https://gw.example/pubsub/", "", Endpoint{"https://gw.example/pubsub", false, "endpoint"}, ""},
		{"the version belongs to us", "https://pubsub.googleapis.com/v1/", "", Endpoint{"https://pubsub.googleapis.com", false, "endpoint"}, ""},
		{"plain http", "http://gw.example", "", Endpoint{"http://gw.example", true, "endpoint"}, ""},
		{"other scheme", "ftp://x", "", Endpoint{}, "endpoint"},
		{"password", "https://me:secret@x", "", Endpoint{}, "endpoint"},
		{"password in no URL", "https://me:secret@x:y z", "", Endpoint{}, "endpoint"},
		{"query", "https://x/?a=b", "", Endpoint{}, "endpoint"},
		{"fragment", "https://x/#a", "", Endpoint{}, "endpoint"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ResolveEndpoint(tt.explicit, env(EmulatorVariable, tt.emulator))
			if tt.refused == "" {
				if err != nil || got != tt.want {
					t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
				}
				return
			}
			e := classify.Of(err)
			if e == nil || e.Class != classify.Config || !strings.HasPrefix(e.Message, tt.refused+": ") || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %+v, %v, want a config error that begins with %s", got, err, tt.refused)
			}
		})
	}
}

func TestResolveProject(t *testing.T) {
	for _, tt := range []struct{ explicit, env, want string }{
		{"a", "b", "a"}, {"", "b", "b"}, {" ", " b ", "b"}, {"", "", ""},
	} {
		if got := ResolveProject(tt.explicit, env("GOOGLE_CLOUD_PROJECT", tt.env)); got != tt.want {
			t.Errorf("ResolveProject(%q) with %q = %q, want %q", tt.explicit, tt.env, got, tt.want)
		}
	}
}
