/** Elements of which the definition is evaluated. */
const sampled = 64;

/** Largest absolute difference, relative to the largest element of `reference`; infinite for NaN or other lengths. */
export function difference(values: Float32Array, reference: Float32Array): number {
  if (values.length !== reference.length) return Number.POSITIVE_INFINITY;
  let most = 0;
  let scale = 0;
  for (let i = 0; i < reference.length; i++) {
    const error = Math.abs((values[i] as number) - (reference[i] as number));
    if (!(error <= most)) most = Number.isNaN(error) ? Number.POSITIVE_INFINITY : error;
    scale = Math.max(scale, Math.abs(reference[i] as number));
  }
  return most / (scale || 1);
}

/** The same against a definition, at places spread over the result by the golden ratio. */
export function differenceFromDefinition(
  values: Float32Array,
  expected: (index: number) => number,
): number {
  const count = Math.min(sampled, values.length);
  const places = Array.from({ length: count }, (_, i) =>
    Math.floor(((i * 0.6180339887498949) % 1) * values.length),
  );
  return difference(
    Float32Array.from(places, (place) => values[place] as number),
    Float32Array.from(places, (place) => expected(place)),
  );
}
