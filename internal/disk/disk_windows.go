package disk

import "golang.org/x/sys/windows"

func free(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return int64(min(free, 1<<62)), err
}

// writable cannot tell before a file is made.
func writable(string) error { return nil }
