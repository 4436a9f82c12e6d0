package local

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// printTable shows what arrived, a line per queue or topic, and below it whatever needs a word. refused
// counts the hooks that were refused before any request, by code.
func printTable(w io.Writer, arrivals []*arrival, refused map[string]int) {
	fmt.Fprintln(w)
	defer func() {
		if len(refused) > 0 {
			fmt.Fprintf(w, "  Refused before any request: %s.\n", byCode(refused))
		}
	}()
	if len(arrivals) == 0 {
		fmt.Fprintln(w, "Nothing arrived: no message reached an ankusa_sqs or ankusa_pubsub output.")
		return
	}
	fmt.Fprintln(w, "What arrived")
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "  to\tqueue or topic\tmessages\trequests\tper request\tstored twice\tgroups\tclaims\trefused")
	for _, a := range arrivals {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			a.service, a.name, thousands(len(a.messages)), thousands(a.requests), a.perRequest(),
			thousands(a.twice), thousands(a.groups), a.claimsText(), a.refusedText())
	}
	_ = t.Flush()
	for _, a := range arrivals {
		if a.collapsed > 0 {
			fmt.Fprintf(w, "\n  %s: %s repeats were collapsed by the queue's deduplication.", a.name, thousands(a.collapsed))
		}
		if a.twice > 0 {
			fmt.Fprintf(w, "\n  %s: %s messages were stored more than once; consumers tell by the idempotency key.", a.name, thousands(a.twice))
		}
		if a.foreign > 0 {
			fmt.Fprintf(w, "\n  %s: %s messages are no Ankusa messages; something else wrote to this queue.", a.name, thousands(a.foreign))
		}
		if a.claimsBroken > 0 {
			fmt.Fprintf(w, "\n  %s: %s of %s claims do NOT redeem to the bytes that their message names.", a.name, thousands(a.claimsBroken), thousands(a.claims))
		}
	}
	fmt.Fprintln(w)
}

func (a *arrival) perRequest() string {
	if a.requests == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(a.entries)/float64(a.requests))
}

func (a *arrival) claimsText() string {
	if a.claims == 0 {
		return "-"
	}
	text := thousands(a.claims)
	switch redeemed := a.claims - a.claimsElsewhere - a.claimsBroken; {
	case redeemed == a.claims:
		text += ", all redeem"
	case redeemed > 0:
		text += fmt.Sprintf(", %s redeem", thousands(redeemed))
	}
	if a.claimsElsewhere > 0 {
		text += fmt.Sprintf(", %s stored elsewhere", thousands(a.claimsElsewhere))
	}
	if a.claimsBroken > 0 {
		text += fmt.Sprintf(", %s BROKEN", thousands(a.claimsBroken))
	}
	return text
}

func (a *arrival) refusedText() string {
	if len(a.refused) == 0 {
		return "-"
	}
	return byCode(a.refused)
}

// byCode prints counts as "2 invalid_field, 1 message_too_large".
func byCode(counts map[string]int) string {
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %s", thousands(counts[code]), code))
	}
	return strings.Join(parts, ", ")
}

// thousands prints 1234567 as 1,234,567.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
