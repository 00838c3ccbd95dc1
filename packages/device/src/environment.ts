const { process } = globalThis as {
  process?: { readonly versions?: { readonly node?: string } };
};

/** Whether this is Node, where WebGPU is Dawn's binding, and neither a browser nor something that looks like one. */
export const isNode: boolean = process?.versions?.node !== undefined && !("document" in globalThis);
