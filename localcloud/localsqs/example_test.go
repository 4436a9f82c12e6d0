package localsqs_test

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/ankusa-connect/ankusa-connect/localcloud"
	"github.com/ankusa-connect/ankusa-connect/localcloud/localsqs"
)

// The first send is carried out and its reply lost; the SDK sends again, and the queue holds the
// message once.
func Example() {
	cloud := localsqs.New(localsqs.Options{AutoCreate: true})
	cloud.Faults.Add(localcloud.Fault{Action: "SendMessage", Nth: 1, Effect: localcloud.Effect{Stored: true, Cut: true}})

	ln, err := localcloud.Listen("127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := localcloud.Serve(ln, cloud)
	defer server.Close()

	client := sqs.New(sqs.Options{
		Region:       localsqs.DefaultRegion,
		BaseEndpoint: aws.String(server.URL()),
		Credentials:  credentials.NewStaticCredentialsProvider(localsqs.DefaultAccessKeyID, localsqs.DefaultSecretAccessKey, ""),
	})
	_, err = client.SendMessage(context.Background(), &sqs.SendMessageInput{
		QueueUrl:               aws.String(localsqs.QueueURL(server.URL(), "hooks.fifo")),
		MessageBody:            aws.String("hello"),
		MessageGroupId:         aws.String("acme/stripe"),
		MessageDeduplicationId: aws.String("01a0"),
	})
	stats := cloud.Stats("hooks.fifo")
	fmt.Println(err, stats.Requests, stats.Messages, stats.Duplicates, cloud.Messages("hooks.fifo")[0].Body)
	// Output: <nil> 2 1 1 hello
}
