package rdna

import "fmt"

func registerName(code int) string {
	switch {
	case code >= firstVector:
		return fmt.Sprintf("v%d", code-firstVector)
	}
	return fmt.Sprintf("s%d", code)
}

func (in *Inst) String() string { return in.Name() }
