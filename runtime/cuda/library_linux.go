package cuda

import "github.com/ebitengine/purego"

// openLibrary also finds what Windows's driver brings into WSL2.
func openLibrary() (uintptr, error) {
	lib, err := purego.Dlopen("libcuda.so.1", purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		if wsl, e := purego.Dlopen("/usr/lib/wsl/lib/libcuda.so.1", purego.RTLD_NOW|purego.RTLD_LOCAL); e == nil {
			return wsl, nil
		}
	}
	return lib, err
}

func librarySymbol(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }
