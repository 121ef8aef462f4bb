package console

// kindTexts explain an attempt without a response, by the class of the error.
var kindTexts = map[string]string{
	"timeout": "No response in time", "connection_refused": "Connection refused", "unreachable": "Unreachable",
	"dns": "Name not found", "tls": "No secure connection", "blocked_address": "Address not allowed",
	"reset": "Connection ended early", "bad_response": "Response was not HTTP", "other": "Other",
}
