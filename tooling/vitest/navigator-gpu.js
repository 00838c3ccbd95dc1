// Stands in for the package `webgpu` where tests compute with the WebGPU of the runtime that they run on, as in Deno.
export const globals = {};
export const create = () => navigator.gpu;
