package localpubsub_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localpubsub"
)

func Example() {
	p := localpubsub.New(localpubsub.Options{})
	if err := p.CreateTopic("hooks", localpubsub.TopicOptions{}); err != nil {
		panic(err)
	}
	// The second publish request is stored, but its reply says too little.
	p.Faults.Add(localcloud.Fault{Action: localpubsub.ActionPublish, Nth: 2, Effect: localpubsub.TooFewIDs()})

	ln, err := localcloud.Listen("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	s := localcloud.Serve(ln, p)
	defer s.Close()

	for range 2 {
		resp, err := http.Post(s.URL()+"/v1/projects/local/topics/hooks:publish", "application/json",
			strings.NewReader(`{"messages":[{"data":"aGVsbG8=","orderingKey":"acme"}]}`))
		if err != nil {
			panic(err)
		}
		fmt.Println(resp.StatusCode, resp.ContentLength > 3)
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()

	for _, m := range p.Published("hooks") {
		fmt.Printf("request %d: %s for %s\n", m.Request, m.Data, m.OrderingKey)
	}
	// Output:
	// 200 true
	// 200 false
	// request 1: hello for acme
	// request 2: hello for acme
}
