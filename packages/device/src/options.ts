/** A value as errors name it. */
export const shown = (value: unknown): string => {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value !== "object" || value === null) return String(value);
  return "then" in value ? "a promise: await it" : Object.prototype.toString.call(value);
};

/** Options that `wrapDevice()` takes. */
export const wrapOptions: readonly string[] = [
  ...["tier", "memoryBudget", "adapterInfo", "hardwareClass", "compilers", "label"],
];

/** Options that every request of a device takes. */
export const deviceOptions: readonly string[] = [...wrapOptions, "features"];

/**
 * @throws TypeError where the options are no object, or one has another type; RangeError for an unknown option, and a budget without room
 */
export function requireOptions(call: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new TypeError(`${call}: the options are ${shown(options)}; pass an object`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new RangeError(`${call}: there is no option ${unknown}; pass any of ${known.join(", ")}`);
  const { memoryBudget, features, label } = options as {
    readonly [name: string]: unknown;
  };
  if (memoryBudget !== undefined && !(typeof memoryBudget === "number" && memoryBudget > 0))
    throw new RangeError(
      `${call}: memoryBudget is ${shown(memoryBudget)}; it must be bytes, a number above 0`,
    );
  if (features !== undefined && !Array.isArray(features))
    throw new TypeError(`${call}: features is ${shown(features)}; it must be a list of names`);
  if (label !== undefined && typeof label !== "string")
    throw new TypeError(`${call}: label is ${shown(label)}; it must be a text`);
}

/** @throws TypeError for what is no GPUDevice */
export function requireGpu(gpu: GPUDevice): void {
  if (typeof (gpu as Partial<GPUDevice> | undefined)?.createComputePipeline !== "function")
    throw new TypeError(
      `wrapDevice(gpu): gpu is ${shown(gpu)}; it must be a GPUDevice: await adapter.requestDevice() for one`,
    );
}
