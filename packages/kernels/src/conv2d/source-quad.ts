/**
 * The places of four gathered numbers: one place where they are neighbouring channels ("u32"), else a place of each ("vec4u"). The
 * arithmetic of coordinates is the same text for both.
 */
export type PlaceType = "u32" | "vec4u";

export const placeType = (isQuads: boolean): PlaceType => (isQuads ? "u32" : "vec4u");

/** A coordinate (u32) past the end of every image, also where an offset is added to it. */
export const farAway = "0x40000000u";

/** WGSL of the elements of `name` at the places `at`, a `vec4f`. */
export const quadAt = (name: string, at: string, type: PlaceType): string =>
  type === "u32"
    ? `load_${name}(${at})`
    : `vec4f(${["x", "y", "z", "w"].map((e) => `at_${name}(${at}.${e})`).join(", ")})`;

/**
 * `source_quad(at, row, column)`: four numbers of the source, zeros where a coordinate lies outside of its image. Coordinates before
 * the start wrap around to numbers past the end; elements at such places are loaded from anywhere and dropped.
 */
export const sourceQuad = (
  type: PlaceType,
): string => `fn source_quad(at: ${type}, row: ${type}, column: ${type}) -> vec4f {
  let inside = (row < ${type}(s.source_height)) & (column < ${type}(s.source_width));
  return select(vec4f(), ${quadAt("source", "at", type)}, inside);
}
`;
