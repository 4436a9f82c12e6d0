package doctor

import (
	"slices"
	"strconv"
	"strings"
)

// place is where failures of an output go: what stands around it in the file.
type place struct {
	pipeline *pipeline
	retried  bool                // a retry stands between the output and what is looked at now
	later    bool                // the output is in a later tier of a fallback
	seen     map[*component]bool // resources on the way, which may name one another in a circle
}

// fallbacks says of each use of an output what becomes of what it refuses.
func (p *pipeline) fallbacks(out *component) []finding {
	found := place{pipeline: p, seen: map[*component]bool{}}.look(out)
	// One resource may be used many times in the same way.
	var distinct []finding
	for _, f := range found {
		if !slices.Contains(distinct, f) {
			distinct = append(distinct, f)
		}
	}
	return distinct
}

const mendFallback = "put it in a fallback whose second tier is a switch on @fallback_error: permanent and config to a dead-letter output, anything else to reject; see docs/errors.md"

// look goes from the output outwards until something takes its failures.
func (pl place) look(out *component) []finding {
	for _, around := range pl.pipeline.around(out) {
		switch around.name {
		case "retry":
			pl.retried = true
		case "drop_on":
			if conf, _ := around.conf.(map[string]any); conf["error"] == true {
				return pl.found(warning, "set error: false, or "+mendFallback, "drop_on at %s loses every hook that fails, those of an outage too", around.path)
			}
		case "fallback":
			tier := tierOf(around, out)
			if next := pl.pipeline.at(around.path + ".fallback." + strconv.Itoa(tier+1)); next != nil {
				return pl.judge(next)
			}
			pl.later = pl.later || tier > 0
		}
	}
	if root := pl.pipeline.resourceOf(out); root != nil {
		return pl.lookAtUses(root)
	}
	switch {
	case pl.later:
		return pl.found(ok, "", "a last tier: what fails here too is nacked and delivered again")
	case pl.retried:
		return pl.found(warning, mendFallback+", without the retry", "a retry stands around it and no fallback: a hook that is refused for good is tried for ever and holds up the others")
	}
	return pl.found(warning, mendFallback, "no fallback around it: a hook that is refused for good is delivered again for ever")
}

// lookAtUses follows a resource to where it is named.
func (pl place) lookAtUses(root *component) []finding {
	if pl.seen[root] {
		return nil
	}
	pl.seen[root] = true
	var all []finding
	used := false
	for _, use := range pl.pipeline.components {
		if use.kind == "output" && use.name == "resource" && use.conf == any(root.label) {
			used = true
			all = append(all, pl.look(use)...)
		}
	}
	if !used {
		return pl.found(skipped, "", "the resource %q is used nowhere in what was read", root.label)
	}
	return all
}

// judge says what the tier behind the output does with failures.
func (pl place) judge(next *component) []finding {
	tier := next
	if label, isText := next.conf.(string); next.name == "resource" && isText {
		if tier = pl.pipeline.outputResource(label); tier == nil {
			return pl.found(failure, "declare it under output_resources, or read its file with -r", "the next tier is the resource %q, and there is no such output", label)
		}
	}
	switch {
	case pl.retried:
		return pl.found(warning, "remove the retry: this output retries by itself", "a retry stands between it and its fallback and replaces the error's text, so the next tier can't tell permanent from transient")
	case tier.name == "switch":
		return pl.found(ok, "", "failures go to the switch at %s", tier.path)
	case tier.name == "reject":
		return pl.found(warning, mendFallback, "the next tier is a bare reject: a hook that is refused for good is delivered again for ever")
	case tier.name == "drop":
		return pl.found(warning, mendFallback, "the next tier is a bare drop: it loses every hook that fails, those of an outage too")
	}
	return pl.found(warning, mendFallback, "the next tier, %s at %s, is no switch: it gets every hook that fails, those of an outage too", tier.name, tier.path)
}

func (pl place) found(s status, mend, format string, args ...any) []finding {
	return []finding{newFinding(s, "fallback", mend, format, args...)}
}

// around lists the outputs that hold c, the nearest first.
func (p *pipeline) around(c *component) []*component {
	var around []*component
	for _, other := range p.components {
		if other.kind == "output" && strings.HasPrefix(c.path, other.path+".") {
			around = append(around, other)
		}
	}
	slices.Reverse(around) // parents come first in the file
	return around
}

// resourceOf returns the output resource that is or holds c; nil when c stands in the stream itself.
func (p *pipeline) resourceOf(c *component) *component {
	parts := strings.SplitN(c.path, ".", 3)
	if len(parts) < 2 || parts[0] != "output_resources" {
		return nil
	}
	return p.at(parts[0] + "." + parts[1])
}

// tierOf is the tier of a fallback that is or holds c.
func tierOf(fallback, c *component) int {
	index, _, _ := strings.Cut(strings.TrimPrefix(c.path, fallback.path+".fallback."), ".")
	n, _ := strconv.Atoi(index)
	return n
}
