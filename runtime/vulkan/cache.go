package vulkan

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// pipelineCache is the driver's cache of compiled pipelines, kept in the user's cache folder. It only saves time, so
// nothing about it is ever an error: a file that cannot be read is ignored, one that cannot be written is not. Drivers
// trust what they get, so nobody else may have written it.
type pipelineCache struct {
	once   sync.Once
	handle vk.PipelineCache // 0 when there is none
	mu     sync.Mutex
	saved  [sha256.Size]byte // of what the file holds
}

// file is the folder and name of what is kept for this device and driver.
func (c *pipelineCache) file(d *Device) (*private.Cache, string, error) {
	folder, err := private.Open("pipelines")
	return folder, fmt.Sprintf("%s-%08x.bin", d.Info.UUID, d.Info.DriverVersion), err
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
	folder, name, err := c.file(d)
	if err != nil {
		return nil
	}
	data := folder.Read(name)
	if len(data) > 0 {
		c.saved = sha256.Sum256(data)
	}
	return data
}

// save writes the cache if it has changed.
func (c *pipelineCache) save(d *Device) {
	if c.handle == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	data := d.cacheData(c.handle)
	if len(data) == 0 {
		return
	}
	sum := sha256.Sum256(data)
	if sum == c.saved {
		return
	}
	if folder, name, err := c.file(d); err == nil && folder.Write(name, data) == nil {
		c.saved = sum
	}
}

// cacheData returns what the driver keeps in a cache, empty if it does not say.
func (d *Device) cacheData(cache vk.PipelineCache) []byte {
	var size uintptr
	if cache == 0 || d.cmd.GetPipelineCacheData(d.handle, cache, &size, nil) != vk.Success || size == 0 {
		return nil
	}
	data := make([]byte, size)
	if d.cmd.GetPipelineCacheData(d.handle, cache, &size, unsafe.Pointer(&data[0])) != vk.Success {
		return nil
	}
	return data[:size]
}

// Cached compiles a pipeline into a cache of its own and returns what the driver keeps there. Its form is the driver's.
func (d *Device) Cached(info PipelineInfo) ([]byte, error) {
	create := vk.PipelineCacheCreateInfo{SType: vk.StructureTypePipelineCacheCreateInfo}
	var cache vk.PipelineCache
	if err := d.cmd.CreatePipelineCache(d.handle, &create, &cache).Err(); err != nil {
		return nil, d.errorf("pipeline %s: create its cache: %w", info.Name, err)
	}
	defer d.cmd.DestroyPipelineCache(d.handle, cache)
	modules, err := d.shaderModules([]PipelineInfo{info})
	if err != nil {
		return nil, err
	}
	module := modules[&info.Words[0]]
	defer d.cmd.DestroyShaderModule(d.handle, module)
	// Drivers do not keep pipelines that capture anything.
	p, err := d.createPipeline(&info, module, cache, 0)
	if err != nil {
		return nil, err
	}
	defer p.Free()
	return d.cacheData(cache), nil
}

func (c *pipelineCache) close(d *Device) {
	if c.handle != 0 {
		d.cmd.DestroyPipelineCache(d.handle, c.handle)
	}
}
