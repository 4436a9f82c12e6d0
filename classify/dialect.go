package classify

import "strings"

// canonical strips from an AWS error code everything that differs between the dialects in which one
// and the same code is spelt: "com.amazonaws.sqs#QueueDoesNotExist", "QueueDoesNotExist;Sender",
// "AWS.SimpleQueueService.NonExistentQueue", "KMS.AccessDeniedException", "ThrottlingException".
// What is left is lower case, without namespace, prefix, dots and the suffix "Exception".
func canonical(code string) string {
	code, _, _ = strings.Cut(code, ";")
	if i := strings.LastIndexByte(code, '#'); i >= 0 {
		code = code[i+1:]
	}
	// The JSON protocol of other AWS services puts a documentation link behind a colon.
	code, _, _ = strings.Cut(code, ":")
	code = strings.ToLower(strings.TrimSpace(code))
	code = strings.TrimPrefix(code, "aws.simplequeueservice.")
	code = strings.ReplaceAll(code, ".", "")
	if s := strings.TrimSuffix(code, "exception"); s != "" {
		code = s
	}
	return code
}

// IsSQSCode reports whether code, in any dialect, is the code named want.
func IsSQSCode(code, want string) bool { return canonical(code) == canonical(want) }
