package batcher

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type ringed struct {
	name int
	node node[ringed]
}

func TestRingAgainstASlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var r ring[ringed]
	var model []*ringed
	for i := range 20_000 {
		e := &ringed{name: i}
		e.node.of = e
		switch n := rng.IntN(6); {
		case n < 2:
			r.push(&e.node)
			model = append(model, e)
		case n == 2:
			r.pushFront(&e.node)
			model = slices.Insert(model, 0, e)
		case n == 3 && len(model) > 0:
			r.turn()
			model = append(model[1:], model[0])
		case len(model) > 0:
			at := rng.IntN(len(model))
			r.remove(&model[at].node)
			if model[at].node.linked() {
				t.Fatal("linked after remove")
			}
			model = slices.Delete(model, at, at+1)
		}
		var got, want []int
		for e := range r.all {
			got = append(got, e.name)
		}
		for _, e := range model {
			want = append(want, e.name)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || r.len != len(want) {
			t.Fatalf("step %d: ring %v, want %v", i, got, want)
		}
		if len(model) > 12 {
			model, r = nil, ring[ringed]{}
		}
	}
}

func TestAlarmsRingInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h alarms[int]
	all := make([]alarm[int], 40)
	for i := range all {
		all[i].at = never
	}
	for i := range 20_000 {
		at := time.Duration(rng.IntN(30))
		if rng.IntN(3) == 0 {
			at = never
		}
		h.set(&all[rng.IntN(len(all))], at)
		first, set := never, 0
		for j := range all {
			if at := all[j].at; at != never {
				set++
				if first == never || at < first {
					first = at
				}
			}
		}
		if h.next() != first || len(h) != set {
			t.Fatalf("step %d: next %v of %d, want %v of %d", i, h.next(), len(h), first, set)
		}
	}
}
