package localsqs

import "github.com/ankusa-connect/ankusa-connect/localcloud"

// wrongMD5 is the MD5 of the empty string: well formed, and never that of a body.
const wrongMD5 = "d41d8cd98f00b204e9800998ecf8427e"

// strangerID is an entry id that nobody sends.
const strangerID = "nobody-sent-this"

// report lists the outcomes as the service does, and then as the script's entry faults would have
// it.
func report(entries []entry, outcomes []outcome) *batchResult {
	result := &batchResult{}
	var swaps []int // positions in Successful
	for i := range outcomes {
		o, id := &outcomes[i], entries[i].id
		did := map[localcloud.EntryEffect]localcloud.EntryFault{}
		for _, f := range o.faults {
			did[f.Do] = f
		}
		has := func(e localcloud.EntryEffect) bool { _, ok := did[e]; return ok }
		if has(localcloud.Drop) || has(localcloud.DropUnstored) {
			continue
		}
		if o.err != nil {
			f := failedEntry{ID: id, SenderFault: o.sender, Code: o.err.query(), Message: o.err.message}
			result.Failed = append(result.Failed, f)
			if has(localcloud.FailTwice) {
				result.Failed = append(result.Failed, f)
			}
			continue
		}
		sent := sentEntry{
			ID: id, MessageID: o.stored.id, SequenceNumber: o.stored.sequence,
			MD5OfMessageBody: o.body, MD5OfMessageAttributes: o.attrs, MD5OfMessageSystemAttributes: o.system,
		}
		if has(localcloud.WrongMD5) {
			sent.MD5OfMessageBody = wrongMD5
		}
		if has(localcloud.WrongAttributeMD5) {
			sent.MD5OfMessageAttributes = wrongMD5
		}
		if has(localcloud.Unknown) {
			sent.ID = strangerID
		}
		if has(localcloud.Swap) {
			swaps = append(swaps, len(result.Successful))
		}
		result.Successful = append(result.Successful, sent)
		if has(localcloud.Twice) {
			result.Successful = append(result.Successful, sent)
		}
		if has(localcloud.ExtraUnknown) {
			sent.ID = strangerID
			result.Successful = append(result.Successful, sent)
		}
		if f, ok := did[localcloud.Both]; ok {
			e := scriptedEntry(f)
			result.Failed = append(result.Failed, failedEntry{ID: id, SenderFault: f.SenderFault, Code: e.query(), Message: e.message})
		}
	}
	for _, i := range swaps {
		if i+1 < len(result.Successful) {
			a, b := &result.Successful[i], &result.Successful[i+1]
			*a, *b = *b, *a
			a.ID, b.ID = b.ID, a.ID
		}
	}
	return result
}
