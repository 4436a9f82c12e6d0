package message

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ankusa-connect/ankusa-connect/claim"
)

// vector is one hook of testdata/hooks.json, with the bytes that golden.py made of it.
type vector struct {
	name   string
	hook   *Hook
	body   []byte
	golden []byte
}

func vectors(tb testing.TB) []vector {
	tb.Helper()
	var in []struct {
		Name string
		Hook struct {
			ID          string            `json:"id"`
			SourceID    string            `json:"source_id"`
			TenantID    string            `json:"tenant_id"`
			ReceivedAt  int64             `json:"received_at"`
			ContentType string            `json:"content_type"`
			DedupeKey   string            `json:"dedupe_key"`
			ReplayID    string            `json:"replay_id"`
			Headers     map[string]string `json:"headers"`
		}
		Claim *struct{ Ref string }
		Body  struct {
			Text, Hex string
			Pattern   int
		}
	}
	raw, err := os.ReadFile("testdata/hooks.json")
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		tb.Fatal(err)
	}
	var out []vector
	for _, c := range in {
		body := []byte(c.Body.Text)
		switch {
		case c.Body.Hex != "":
			if body, err = hex.DecodeString(c.Body.Hex); err != nil {
				tb.Fatal(err)
			}
		case c.Body.Pattern != 0:
			body = pattern(c.Body.Pattern)
		}
		h := &Hook{
			ID: c.Hook.ID, SourceID: c.Hook.SourceID, TenantID: c.Hook.TenantID, ReceivedAt: c.Hook.ReceivedAt,
			ContentType: c.Hook.ContentType, DedupeKey: c.Hook.DedupeKey, ReplayID: c.Hook.ReplayID, Headers: c.Hook.Headers,
		}
		if c.Claim != nil {
			ref, err := claim.ParseRef(c.Claim.Ref)
			if err != nil {
				tb.Fatal(err)
			}
			sum := sha256.Sum256(body)
			h.Claim = &Claim{Ref: ref, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(body))}
		} else {
			h.Body = body
		}
		golden, err := os.ReadFile(filepath.Join("testdata", "golden", c.Name+".json"))
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, vector{c.Name, h, body, golden})
	}
	return out
}

// pattern is n bytes of every value up to 250, as in golden.py.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}
