package vulkan

import (
	"strings"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// messages collects what the validation layer says.
type messages struct {
	mu   sync.Mutex
	list []string
}

// maxMessages bounds the list: one mistake in a replayed command buffer is
// reported at each submission.
const maxMessages = 1000

// falseAlarms are messages of the layer that are known to be wrong: the layer
// of Debian 12 is of version 1.3.239 and does not know what came later.
var falseAlarms = []struct {
	text   string // part of the message
	reason string
}{
	{"unknown VkStructureType (1000506000)", "the features of VK_KHR_cooperative_matrix"},
	{"Device Extension VK_KHR_cooperative_matrix is not supported by this layer", "the same"},
}

func (m *messages) add(text string) {
	for _, f := range falseAlarms {
		if strings.Contains(text, f.text) {
			return
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.list) < maxMessages {
		m.list = append(m.list, text)
	}
}

func (m *messages) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.list...)
}

// messageCallback is the one C callback of the process: they are never freed.
// The messages to add to are its user data.
var messageCallback = sync.OnceValue(func() uintptr {
	return vk.NewCallback(func(_, _ uintptr, data *vk.DebugUtilsMessengerCallbackDataEXT, m *messages) uintptr {
		m.add(vk.StringAt(data.PMessage))
		return 0 // the call that caused the message goes on
	})
})

// messengerInfo describes a messenger that adds to m, which must stay reachable
// from Go for as long as the messenger lives.
func messengerInfo(m *messages) *vk.DebugUtilsMessengerCreateInfoEXT {
	return &vk.DebugUtilsMessengerCreateInfoEXT{
		SType:           vk.StructureTypeDebugUtilsMessengerCreateInfoEXT,
		MessageSeverity: vk.DebugUtilsMessageSeverityWarningBitEXT | vk.DebugUtilsMessageSeverityErrorBitEXT,
		MessageType:     vk.DebugUtilsMessageTypeValidationBitEXT,
		PfnUserCallback: messageCallback(),
		PUserData:       unsafe.Pointer(m),
	}
}

// ValidationMessages are the warnings and errors of the validation layer since
// the device was opened, those about other devices included, known false alarms
// not. There are none unless ZINC_VALIDATE=1 was set when the process first
// looked for devices.
func (d *Device) ValidationMessages() []string {
	if d.inst.messages == nil {
		return nil
	}
	return d.inst.messages.all()[d.firstMessage:]
}
