/** A device as another library or the page itself would make one: with what the libraries want, and no more. */
export async function rawDevice() {
  const adapter = await navigator.gpu.requestAdapter();
  const requiredFeatures = ["shader-f16", "subgroups"].filter((name) => adapter.features.has(name));
  const { maxStorageBuffersPerShaderStage } = adapter.limits;
  const gpu = await adapter.requestDevice({
    requiredFeatures,
    requiredLimits: { maxStorageBuffersPerShaderStage },
  });
  return { adapter, gpu };
}
