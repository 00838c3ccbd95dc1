import type { Binding, Launch, LaunchTarget } from "@halfstep/device";
import { isHalf } from "@halfstep/formats/dtypes";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import type { ProductPlan } from "../matmul/shape.js";
import { scratch } from "../scratch.js";

/** The places of a product's slices in the result. */
export interface Slices {
  /** Rows, and columns, of one slice. */
  readonly m: number;
  readonly n: number;
  /** Groups of channels. */
  readonly groups: number;
  /** Number of phases of lines and of columns of an image; each phase is a slice of its own. */
  readonly phases: readonly [y: number, x: number];
  /** Of an image of the result. */
  readonly height: number;
  readonly width: number;
}

/**
 * Launches a product whose slices are interleaved in the result: slices [phases, groups, splits, m, n], where the m rows are
 * pixels [images, ⌈height / phases⌉, ⌈width / phases⌉], become `out` [images, height, width, groups, n]. Splits are added up.
 */
export function launchSlices<B>(
  target: LaunchTarget<B>,
  plan: ProductPlan,
  out: Binding<B>,
  slices: Slices,
  product: (parts: Binding<B>) => Launch<B>,
): void {
  if (out.length === 0) return;
  const { m, n, groups, phases, height, width } = slices;
  const stride = plan.columns * plan.width;
  const length = phases[0] * phases[1] * groups * plan.splits * m * stride;
  // Slices that are not added up are stored in the dtype of the result, so that they round only once.
  const dtype = isHalf(out.dtype) && plan.splits === 1 ? out.dtype : "float32";
  const parts = scratch(target, length, dtype);
  target.launch(product(parts));
  target.launch({
    kernel: n % 4 === 0 ? quadsKernel : elementsKernel,
    bindings: [parts, out],
    scalars: {
      count: out.length,
      group_n: n,
      stride,
      m,
      splits: plan.splits,
      groups,
      phases_y: phases[0],
      phases_x: phases[1],
      height,
      width,
    },
  });
}

const scalarNames = [
  "count",
  "group_n",
  "stride",
  "m",
  "splits",
  "groups",
  "phases_y",
  "phases_x",
  "height",
  "width",
] as const;

type Numbers = Readonly<Record<(typeof scalarNames)[number], number>>;

/** `first_of(row)`: the start of the first part of a row of n channels, for a row of the result. */
const firstOf = `fn first_of(row: u32) -> u32 {
  let channel_group = row % s.groups;
  let pixel = row / s.groups;
  let x = pixel % s.width;
  let line = pixel / s.width;
  let y = line % s.height;
  let grid_height = (s.height + s.phases_y - 1u) / s.phases_y;
  let grid_width = (s.width + s.phases_x - 1u) / s.phases_x;
  let slice = (y % s.phases_y * s.phases_x + x % s.phases_x) * s.groups + channel_group;
  let place = (line / s.height * grid_height + y / s.phases_y) * grid_width + x / s.phases_x;
  return (slice * s.splits * s.m + place) * s.stride;
}
`;

/** An invocation stores a row of n channels in quads, so that it computes its place once, or one quad of any elements. */
function assembleKernel(isQuads: boolean) {
  return defineKernel({
    name: "assembleSlices",
    variant: isQuads ? "quads" : "",
    epilogue: "store",
    bindings: [
      { name: "parts", access: "read" },
      { name: "out", access: "write" },
    ],
    scalars: scalarNames.map((name) => ({ name, type: "u32" })),
    body: () => `${firstOf}
${isQuads ? storeRows : storeElements}`,
    workgroups: ({ count, group_n }) =>
      linearWorkgroups(Math.ceil((count as number) / (isQuads ? (group_n as number) : 4))),
    reference([parts, out], scalars) {
      const s = scalars as unknown as Numbers;
      if (!parts || !out) return;
      for (let row = 0; row < s.count / s.group_n; row++) {
        const first = firstPart(s, row);
        for (let c = 0; c < s.group_n; c++) {
          let sum = 0;
          for (let part = 0; part < s.splits; part++)
            sum += parts[first + part * s.m * s.stride + c] as number;
          out[row * s.group_n + c] = sum;
        }
      }
    },
  });
}

const storeRows = `${linearMain()}
  let quads = s.group_n >> 2u;
  if (index * s.group_n >= s.count) { return; }
  let first = first_of(index) >> 2u;
  let pitch = (s.m * s.stride) >> 2u;
  for (var quad = 0u; quad < quads; quad++) {
    var sum = vec4f();
    for (var part = 0u; part < s.splits; part++) { sum += load_parts(first + part * pitch + quad); }
    store_out(index * quads + quad, sum);
  }
}
`;

const storeElements = `
fn sum_at(i: u32) -> f32 {
  var at = first_of(i / s.group_n) + i % s.group_n;
  var sum = 0.0;
  for (var part = 0u; part < s.splits; part++) {
    sum += at_parts(at);
    at += s.m * s.stride;
  }
  return sum;
}
${linearMain()}
  if (index * 4u >= s.count) { return; }
  let i = index * 4u;
  store_out(index, vec4f(sum_at(i), sum_at(i + 1u), sum_at(i + 2u), sum_at(i + 3u)));
}
`;

/** The same as {@link firstOf}. */
function firstPart(s: Numbers, row: number): number {
  const group = row % s.groups;
  const pixel = Math.floor(row / s.groups);
  const x = pixel % s.width;
  const line = Math.floor(pixel / s.width);
  const y = line % s.height;
  const gridHeight = Math.ceil(s.height / s.phases_y);
  const gridWidth = Math.ceil(s.width / s.phases_x);
  const slice = ((y % s.phases_y) * s.phases_x + (x % s.phases_x)) * s.groups + group;
  const place =
    (Math.floor(line / s.height) * gridHeight + Math.floor(y / s.phases_y)) * gridWidth +
    Math.floor(x / s.phases_x);
  return (slice * s.splits * s.m + place) * s.stride;
}

const quadsKernel = assembleKernel(true);
const elementsKernel = assembleKernel(false);
