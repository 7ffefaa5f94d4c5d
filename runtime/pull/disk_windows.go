package pull

import "golang.org/x/sys/windows"

// freeSpace is what this user may still write on the disk of dir, in bytes.
func freeSpace(dir string) (int64, error) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(path, &free, nil, nil)
	return int64(min(free, 1<<62)), err
}
