import type { Kernel } from "@halfstep/device";

/**
 * Sums of the left factor's rows, computed from the loads of a product: for a transposed factor, whose quads are four rows each. They
 * are stored in a binding `row_sums`, [slices, m in whole quads], by the first tile or block of each row of them.
 */
export const rowSumStore = `fn store_row_sum(slice: u32, quad: u32, sum: vec4f) {
  if (quad * 4u >= s.m) { return; }
  let inside = vec4u(quad * 4u) + vec4u(0u, 1u, 2u, 3u) < vec4u(s.m);
  store_row_sums(slice * ((s.m + 3u) >> 2u) + quad, select(vec4f(), sum, inside));
}
`;

/** What products need besides to add up the rows of their left factor. They get it from `matmulWithRowSums`: others do without. */
export interface RowSumsSupport {
  /** WGSL of `store_row_sum`. */
  readonly store: string;
  readonly ofLanes: typeof laneRowSums;
  readonly ofInvocation: typeof ownRowSums;
  readonly ofBlock: typeof blockRowSums;
  /** Adds up the parts of a product, and of its row sums. */
  readonly sumParts: Kernel;
}

/** Elements of row sums in one slice of several. */
export const rowSumsLength = (m: number): number => Math.ceil(m / 4) * 4;

/** WGSL of a program that adds up its left factor. */
export interface RowSums {
  /** Declarations that precede the loop over k. */
  readonly before: string;
  /** Statements behind each step's loads. */
  readonly each: string;
  /** Statements behind the loop, in uniform control flow. */
  readonly after: string;
}

export const noRowSums: RowSums = { before: "", each: "", after: "" };

/**
 * The row sums of a tile of `rows`. Its registers `registers[g]` have, in lane l, part `u · quads + quad` = g · lanes + l at the
 * step's k number u. Lanes and registers with the same quad at several k are added up. `ofLane` reads a value from a lane; `isFirst`
 * is WGSL (bool), uniform.
 */
export function laneRowSums(
  {
    rows,
    lanes,
    registers,
  }: {
    readonly rows: number;
    readonly lanes: number;
    readonly registers: readonly string[];
  },
  ofLane: (value: string, lane: number) => string,
  isFirst: string,
): RowSums {
  const quads = rows / 4;
  // Registers at this distance have the same quads.
  const apart = Math.max(1, quads / lanes);
  const sums = Array.from({ length: apart }, (_, j) => j);
  const totals = Array.from({ length: quads }, (_, q) => {
    const terms: string[] = [];
    for (let lane = q % lanes; lane < Math.min(lanes, rows); lane += quads)
      terms.push(ofLane(`row_sum${Math.floor(q / lanes)}`, lane));
    return terms.join(" + ");
  });
  return {
    before: sums.map((j) => `  var row_sum${j} = vec4f();\n`).join(""),
    each: sums
      .map((j) => `row_sum${j} += ${registers.filter((_, g) => g % apart === j).join(" + ")};\n`)
      .join(""),
    after: `  if (${isFirst}) {
    var totals = array<vec4f, ${quads}>(${totals.join(", ")});
    for (var q = lane; q < ${quads}u; q += ${lanes}u) { store_row_sum(slice, (row >> 2u) + q, totals[q]); }
  }
`,
  };
}

/** The row sums of a tile of `rows` that an invocation computes alone, from a register for each part. */
export function ownRowSums(rows: number, register: (part: number) => string): RowSums {
  const quads = Array.from({ length: rows / 4 }, (_, q) => q);
  const each = quads.map((q) => {
    const parts = [0, 1, 2, 3].map((u) => register((u * rows) / 4 + q));
    return `row_sum${q} += ${parts.join(" + ")};`;
  });
  const after = quads.map((q) => `store_row_sum(slice, (row >> 2u) + ${q}u, row_sum${q});`);
  return {
    before: quads.map((q) => `  var row_sum${q} = vec4f();\n`).join(""),
    each: `if (column == 0u) { ${each.join(" ")} }\n`,
    after: `  if (column == 0u) { ${after.join(" ")} }\n`,
  };
}

/** Workgroup memory that the invocations of a block share: `capacity` places for a `vec4f`. */
export interface MeetingPlace {
  readonly capacity: number;
  /** WGSL (vec4f) of a place. */
  get(place: string): string;
  /** Statement that puts a `vec4f` in a place. */
  put(place: string, value: string): string;
}

/**
 * The row sums of a block of `rows`. Each invocation always loads the same quads of rows, one or two, at several k; `loaded` are the
 * `vec4f` of each load in a step, one for each quad.
 */
export function blockRowSums(
  { rows, invocations }: { readonly rows: number; readonly invocations: number },
  loaded: readonly (readonly string[])[],
  { capacity, get, put }: MeetingPlace,
): RowSums {
  const quads = Array.from({ length: loaded[0]?.length ?? 0 }, (_, q) => q);
  const groups = rows / 4 / quads.length;
  const places = Math.min(capacity, invocations);
  if (invocations % groups !== 0 || places % groups !== 0)
    throw new RangeError(
      `a block of ${rows} rows cannot be added up by ${invocations} invocations in ${capacity} places`,
    );
  const meet = (q: number): string => {
    let code = `    workgroupBarrier();
    if (local < ${places}u) { ${put("local", `row_sum${q}`)} }
    workgroupBarrier();
`;
    for (let first = places; first < invocations; first += places)
      code += `    if (local >= ${first}u && local < ${first + places}u) {
      let place = local - ${first}u;
      ${put("place", `${get("place")} + row_sum${q}`)}
    }
    workgroupBarrier();
`;
    return `${code}    if (local < ${groups}u) {
      var total = vec4f();
      for (var place = local; place < ${places}u; place += ${groups}u) { total += ${get("place")}; }
      store_row_sum(slice, (row0 >> 2u) + local * ${quads.length}u + ${q}u, total);
    }
`;
  };
  const add = quads.map(
    (q) => `row_sum${q} += ${loaded.map((ofLoad) => ofLoad[q] as string).join(" + ")};`,
  );
  return {
    before: quads.map((q) => `  var row_sum${q} = vec4f();\n`).join(""),
    each: `    if (column0 == 0u) { ${add.join(" ")} }\n`,
    after: `  if (column0 == 0u) {\n${quads.map(meet).join("")}  }\n`,
  };
}
