const { process } = globalThis as {
  process?: { readonly versions?: { readonly node?: string } };
};

/** Whether this is Node, where WebGPU is Dawn's binding, and not a browser or an environment that imitates one. */
export const isNode: boolean = process?.versions?.node !== undefined && !("document" in globalThis);
