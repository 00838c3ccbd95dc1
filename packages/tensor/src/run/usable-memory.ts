/** What of Node's `process` tells how much memory there is. Bun and Deno have it, too. */
interface HostProcess {
  constrainedMemory?(): number;
  getBuiltinModule?(name: string): { totalmem?(): number } | undefined;
}

/** The bytes that the process may use; undefined where the host does not say, as in pages. */
export function usableMemory(): number | undefined {
  const { process } = globalThis as { readonly process?: HostProcess };
  const total = process?.getBuiltinModule?.("node:os")?.totalmem?.();
  if (!total) return undefined;
  // Zero, or more than the machine's memory, means "no limit".
  const limit = process?.constrainedMemory?.() ?? 0;
  return limit > 0 ? Math.min(limit, total) : total;
}
