package plans

// Dialect is how a model marks reasoning and tool calls, and what its chat
// template takes. Package runtime/chat found it out when the plan was made.
// The zero value means that the plan does not say.
type Dialect struct {
	Name string `json:"name"` // of the form of calls, or "content"
	// ReasoningOpen and ReasoningClose stand around reasoning; Closing is the
	// second with the white space, and more, that the template puts around it.
	ReasoningOpen  string `json:"reasoning_open,omitempty"`
	ReasoningClose string `json:"reasoning_close,omitempty"`
	Closing        string `json:"closing,omitempty"`
	PromptOpens    bool   `json:"prompt_opens,omitempty"` // the prompt ends with ReasoningOpen unless told otherwise
	Switch         string `json:"switch,omitempty"`       // the variable that turns reasoning on and off
	Effort         bool   `json:"effort,omitempty"`       // the template reads reasoning_effort

	Calls     string   `json:"calls,omitempty"`      // the form of calls; "": the template has none
	TextCalls bool     `json:"text_calls,omitempty"` // the template takes arguments as JSON text, not as an object
	OneCall   bool     `json:"one_call,omitempty"`   // a message has one call at most
	Parts     bool     `json:"parts,omitempty"`      // the template takes content as a list of parts
	OnlyParts bool     `json:"only_parts,omitempty"` // and not as text
	Roles     []string `json:"roles,omitempty"`      // of system, developer and tool: those that the template writes
	Ends      []string `json:"ends,omitempty"`       // what stands behind an answer
}
