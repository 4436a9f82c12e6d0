package localcloud

import (
	"bytes"
	"maps"
	"net"
	"net/http"
	"strconv"
	"time"
)

// A Writer turns an ErrorReply into a reply of its cloud.
type Writer func(*ErrorReply) *Reply

// Instead reports whether e takes the place of the request's own reply, and whether the request is
// to be carried out first. A cloud does as told and then calls Send.
func (e *Effect) Instead() (replaced, carryOut bool) {
	t := e.terminal()
	return t, !t || e.Stored
}

// Send puts the request's end on the wire: own, the reply that the cloud made, or what e puts in its
// place. own may be nil when e replaces it. now is the cloud's clock: the Date header is that plus
// Skew.
//
// A cut ends the handler by panic(http.ErrAbortHandler), which net/http understands, where the
// connection can't be taken over (HTTP/2).
func (e *Effect) Send(w http.ResponseWriter, r *http.Request, now time.Time, own *Reply, write Writer) {
	reply := own
	switch {
	case e.Cut || e.Reset:
		cut(w, e.Reset)
		return
	case e.Stall:
		<-r.Context().Done()
		cut(w, false)
		return
	case e.Error != nil:
		reply = write(e.Error)
	case e.Reply != nil:
		reply = e.Reply
	case e.Endless:
		reply = &Reply{Header: http.Header{"Content-Type": {"text/plain"}}}
	}
	h := w.Header()
	maps.Copy(h, reply.Header)
	h.Set("Date", now.Add(e.Skew).UTC().Format(http.TimeFormat))
	for k, v := range e.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	status := reply.Status
	if status == 0 {
		status = http.StatusOK
	}
	body := reply.Body
	if e.Truncate {
		body = body[:len(body)/2]
	}
	if e.Endless {
		e.flood(w, r, status, body)
		return
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if e.Trickle > 0 {
		flush(w)
		if Sleep(r.Context(), e.Trickle) != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if e.CutReply {
		_, _ = w.Write(body[:len(body)/2])
		flush(w)
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
}

// flood writes until the client goes.
func (e *Effect) flood(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.WriteHeader(status)
	_, _ = w.Write(body)
	junk := bytes.Repeat([]byte("all work and no play makes a dull reply\n"), 400)
	for r.Context().Err() == nil {
		if _, err := w.Write(junk); err != nil {
			break
		}
	}
	panic(http.ErrAbortHandler)
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }

// cut ends the connection with nothing more written to it.
func cut(w http.ResponseWriter, reset bool) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0) // no linger: close sends RST
	}
	_ = conn.Close()
}
