/** What all work gives. Where some of it fails, the error is that of the first in order, whichever failed first in time. */
export async function allInOrder<T extends readonly unknown[]>(
  work: readonly [...{ [K in keyof T]: Promise<T[K]> }],
): Promise<[...T]> {
  await Promise.allSettled(work);
  return Promise.all(work) as Promise<[...T]>;
}
