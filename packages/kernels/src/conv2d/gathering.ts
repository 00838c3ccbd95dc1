import type { FactorLoad, FactorQuads, GroupForm } from "../matmul/block.js";

/** How a load of a factor gathers from memory. */
export interface Gathering {
  /** Neighbouring channels that lie at one place. Places are counted in groups of so many. */
  readonly group: 1 | 4 | 8;
  /**
   * The type of a place: "vec4u" for four single channels, each at a place of its own. The arithmetic of coordinates is the same text
   * for both.
   */
  readonly place: "u32" | "vec4u";
  /** The type of what a load gives. */
  readonly value: string;
  /** WGSL that loads from the binding `name`. */
  load(name: string, at: string): string;
}

/** Loads of four channels as numbers, at one place where they are neighbours in memory. */
const asNumbers = (group: ChannelGroup): Gathering =>
  group === 1
    ? {
        group: 1,
        place: "vec4u",
        value: "vec4f",
        load: (name, at) =>
          `vec4f(${["x", "y", "z", "w"].map((e) => `at_${name}(${at}.${e})`).join(", ")})`,
      }
    : { group: 4, place: "u32", value: "vec4f", load: (name, at) => `load_${name}(${at})` };

const asStored = ({ elements, type }: GroupForm): Gathering => ({
  group: elements,
  place: "u32",
  value: type,
  load: (name, at) => `stored_${name}(${at})`,
});

/** The largest group of channels of which the channels of a convolution's group consist. */
export type ChannelGroup = 1 | 4 | 8;

/** A gathered factor that decodes its numbers, or copies them where it consists of groups of channels. Its loads give zeros outside. */
export const gatheredFactor = (
  along: "k" | "across",
  group: ChannelGroup,
  load: (gathering: Gathering) => FactorLoad,
): FactorQuads => ({
  along,
  isBounded: true,
  ...load(asNumbers(group)),
  ...(group > 1 && {
    copied: { elements: group as 4 | 8, inGroups: (form) => load(asStored(form)) },
  }),
});

/** WGSL of the four single channels, or the group of them, that begins at a group's number. */
export const firstChannels = ({ group }: Gathering, number: string): string =>
  group === 1 ? `(${number}) * 4u + vec4u(0u, 1u, 2u, 3u)` : number;

/** WGSL (u32) of a number of channels in groups. */
export const inGroups = ({ group }: Gathering, channels: string): string =>
  group === 1 ? channels : `${channels} / ${group}u`;

/** A coordinate (u32) past the end of every image, also where an offset is added to it. */
export const farAway = "0x40000000u";

/**
 * `source_at(at, row, column)`: what the source has at a place, zeros where a coordinate lies outside of its image. Coordinates before
 * the start wrap around to numbers past the end; elements at such places are loaded from anywhere and dropped.
 */
export const sourceFunction = ({
  place,
  value,
  load,
}: Gathering): string => `fn source_at(at: ${place}, row: ${place}, column: ${place}) -> ${value} {
  let inside = (row < ${place}(s.source_height)) & (column < ${place}(s.source_width));
  return select(${value}(), ${load("source", "at")}, inside);
}
`;
