/** Number of elements. */
export function sizeOf(shape: readonly number[]): number {
  let size = 1;
  for (let d = 0; d < shape.length; d++) size *= shape[d] as number;
  return size;
}

export function isSameShape(a: readonly number[], b: readonly number[]): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let d = 0; d < a.length; d++) if (a[d] !== b[d]) return false;
  return true;
}
