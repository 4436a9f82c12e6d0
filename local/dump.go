package local

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// dump writes every message that arrived to a file, one JSON object per line, in the order of arrival
// in its queue or topic.
func dump(path string, arrivals []*arrival) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // it holds hook bodies
	if err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, a := range arrivals {
		for _, m := range a.messages {
			if err := enc.Encode(struct {
				Service string `json:"service"`
				Queue   string `json:"queue"`
				received
			}{a.service, a.name, m}); err != nil {
				return fmt.Errorf("dump: %w", err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("dump: %w", err)
	}
	return nil
}
