// The numbers of the WebGPU specification, because `GPUBufferUsage` and its like are not global everywhere.

export const BufferUsage = {
  mapRead: 0x1,
  copySource: 0x4,
  copyTarget: 0x8,
  uniform: 0x40,
  storage: 0x80,
  indirect: 0x100,
  queryResolve: 0x200,
} as const;

export const mapModeRead = 0x1;

export const shaderStageCompute = 0x4;
