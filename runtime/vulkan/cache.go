package vulkan

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// pipelineCache is the driver's cache of compiled pipelines, kept in the user's
// cache folder. It only saves time, so nothing about it is ever an error: a
// file that cannot be read is ignored, one that cannot be written is not.
type pipelineCache struct {
	once   sync.Once
	handle vk.PipelineCache // 0 when there is none
	mu     sync.Mutex
	saved  [sha256.Size]byte // what the file holds
}

// path is where the cache of this device and driver is kept. The file is the
// SHA-256 of the driver's data and then the data: drivers trust what they get.
func (c *pipelineCache) path(d *Device) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%08x.bin", d.Info.UUID, d.Info.DriverVersion)
	return filepath.Join(dir, "zincc", "pipelines", name), nil
}

// load creates the cache, from the file if that is whole.
func (c *pipelineCache) load(d *Device) {
	c.once.Do(func() {
		info := vk.PipelineCacheCreateInfo{SType: vk.StructureTypePipelineCacheCreateInfo}
		if data := c.read(d); len(data) > 0 {
			info.InitialDataSize = uintptr(len(data))
			info.PInitialData = unsafe.Pointer(&data[0])
		}
		if d.cmd.CreatePipelineCache(d.handle, &info, &c.handle) != vk.Success {
			c.handle = 0
		}
	})
}

func (c *pipelineCache) read(d *Device) []byte {
	path, err := c.path(d)
	if err != nil {
		return nil
	}
	file, err := os.ReadFile(path)
	if err != nil || len(file) < sha256.Size {
		return nil
	}
	sum := sha256.Sum256(file[sha256.Size:])
	if !bytes.Equal(sum[:], file[:sha256.Size]) {
		return nil
	}
	c.saved = sum
	return file[sha256.Size:]
}

// save writes the cache if it has changed, under another name first: another
// process may be reading the file.
func (c *pipelineCache) save(d *Device) {
	if c.handle == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var size uintptr
	if d.cmd.GetPipelineCacheData(d.handle, c.handle, &size, nil) != vk.Success || size == 0 {
		return
	}
	data := make([]byte, size)
	if d.cmd.GetPipelineCacheData(d.handle, c.handle, &size, unsafe.Pointer(&data[0])) != vk.Success {
		return
	}
	data = data[:size]
	sum := sha256.Sum256(data)
	if sum == c.saved {
		return
	}
	path, err := c.path(d)
	if err != nil || os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "*.tmp")
	if err != nil {
		return
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	_, err = tmp.Write(append(sum[:], data...))
	if tmp.Close() == nil && err == nil && os.Rename(tmp.Name(), path) == nil {
		c.saved = sum
	}
}

func (c *pipelineCache) close(d *Device) {
	if c.handle != 0 {
		d.cmd.DestroyPipelineCache(d.handle, c.handle)
	}
}
