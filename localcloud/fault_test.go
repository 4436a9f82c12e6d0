package localcloud

import (
	"net/http"
	"slices"
	"testing"
	"time"
)

// strikes runs n requests of an action and returns the ordinals at which the script struck.
func strikes(f *Faults, action string, n int) []int {
	var at []int
	for i := 1; i <= n; i++ {
		e := f.Take(&Call{Action: action, Ordinal: i, Resource: "q"})
		if replaced, _ := e.Instead(); replaced {
			at = append(at, i)
		}
	}
	return at
}

func TestFaultsStrikeWhereTheScriptSays(t *testing.T) {
	cut := Effect{Cut: true}
	for _, c := range []struct {
		name  string
		fault Fault
		want  []int
	}{
		{"without a condition always", Fault{Effect: cut}, []int{1, 2, 3, 4, 5, 6}},
		{"another action never", Fault{Action: "Other", Effect: cut}, nil},
		{"another resource never", Fault{Resource: "p", Effect: cut}, nil},
		{"this resource", Fault{Resource: "q", Times: 1, Effect: cut}, []int{1}},
		{"the nth", Fault{Action: "Send", Nth: 3, Effect: cut}, []int{3}},
		{"every nth", Fault{Every: 2, Effect: cut}, []int{2, 4, 6}},
		{"every nth, twice", Fault{Every: 2, Times: 2, Effect: cut}, []int{2, 4}},
		{"a condition", Fault{If: func(c *Call) bool { return c.Ordinal > 4 }, Effect: cut}, []int{5, 6}},
		{"conditions together", Fault{Every: 2, If: func(c *Call) bool { return c.Ordinal > 4 }, Effect: cut}, []int{6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f Faults
			f.Add(c.fault)
			if got := strikes(&f, "Send", 6); !slices.Equal(got, c.want) {
				t.Errorf("struck at %v, want %v", got, c.want)
			}
		})
	}
}

func TestChanceIsRepeatable(t *testing.T) {
	run := func(seed uint64) []int {
		var f Faults
		f.Seed(seed)
		f.Add(Fault{Chance: 0.5, Effect: Effect{Cut: true}})
		return strikes(&f, "Send", 200)
	}
	first := run(7)
	if n := len(first); n < 60 || n > 140 {
		t.Errorf("struck %d of 200 times at a chance of a half", n)
	}
	if !slices.Equal(first, run(7)) {
		t.Error("the same seed gave other strikes")
	}
	if slices.Equal(first, run(8)) {
		t.Error("another seed gave the same strikes")
	}
}

func TestScriptTellsWhatFiredAndWhatIsArmed(t *testing.T) {
	var f Faults
	f.Add(
		Fault{Name: "once", Action: "Send", Nth: 1, Effect: Effect{Cut: true}},
		Fault{Name: "thrice", Times: 3, Effect: Effect{Wait: time.Second}},
	)
	if e := f.Take(&Call{Action: "Send", Ordinal: 1}); !e.Cut || e.Wait != time.Second {
		t.Errorf("effect %+v, want both faults'", e)
	}
	want := []Fired{{Name: "once", Action: "Send", Ordinal: 1}, {Name: "thrice", Action: "Send", Ordinal: 1}}
	if got := f.Fired(); !slices.Equal(got, want) {
		t.Errorf("fired %v, want %v", got, want)
	}
	if armed := f.Armed(); len(armed) != 1 || armed[0].Name != "thrice" || armed[0].Times != 2 {
		t.Errorf("armed %+v, want thrice with 2 to go", armed)
	}
	f.Clear()
	if f.Any() || len(f.Fired()) != 2 {
		t.Error("Clear should disarm and keep the record")
	}
}

// Of two replies the first added wins; what can go together does.
func TestEffectsMerge(t *testing.T) {
	var f Faults
	f.Add(
		Fault{Effect: Effect{Error: &ErrorReply{Code: "A"}, Header: http.Header{"Retry-After": {"1"}}}},
		Fault{Name: "b", Effect: Effect{Error: &ErrorReply{Code: "B"}, Stored: true, Truncate: true, Header: http.Header{"Retry-After": {"2"}, "X": {"y"}}}},
	)
	e := f.Take(&Call{})
	if e.Error.Code != "A" || e.Stored || !e.Truncate || e.Header.Get("Retry-After") != "1" || e.Header.Get("X") != "y" {
		t.Errorf("merged to %+v", e)
	}
	if e.Error.Message == "" {
		t.Error("an error without a message should get one")
	}
}
