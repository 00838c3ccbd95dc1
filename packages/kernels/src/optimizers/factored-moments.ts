import type { Binding, KernelView, LaunchTarget } from "@halfstep/device";
import { defineKernel, linearMain, linearWorkgroups } from "../kernel.js";
import type { UpdateRange } from "./launch-update.js";
import type { SegmentPlace } from "./segment-table.js";

/** Words of a segment in `places`: first element, rows and columns of a matrix, its row base, its column base, 1 for matrices. */
export const factoredPlaceWords = 8;

const taskWords = 4;
const isColumn = 0x8000_0000;
const groupSize = 64;

/**
 * The layout of Adafactor's second moments. A segment of two axes or more is a stack of matrices of its last two axes, with a
 * moment for each row and each column. Any other segment has one for each element, as if its elements were rows of one column.
 */
export interface FactoredLayout {
  /** `[first element, count, stride, place | 2^31 for columns]` of each moment, segment by segment. */
  readonly tasks: Uint32Array;
  /** `[row base, rows, column base, columns]` of each matrix; 0 columns for segments that are not factored. */
  readonly matrices: Uint32Array;
  readonly places: Uint32Array;
  readonly rows: readonly { readonly offset: number; readonly length: number }[];
  readonly columns: readonly { readonly offset: number; readonly length: number }[];
  /** The starts of the tasks and the matrices of segment i; one more entry is the end of the last. */
  readonly firstTasks: readonly number[];
  readonly firstMatrices: readonly number[];
  readonly rowCount: number;
  readonly columnCount: number;
}

/** The layout of the factored second moments of flat parameters: the rows and columns of each tensor. */
export function factoredLayout(segments: readonly SegmentPlace[]): FactoredLayout {
  const tasks: number[] = [];
  const matrices: number[] = [];
  const rows: { offset: number; length: number }[] = [];
  const columns: { offset: number; length: number }[] = [];
  const firstTasks = [0];
  const firstMatrices = [0];
  const shapes: { readonly offset: number; readonly r: number; readonly c: number }[] = [];
  let rowCount = 0;
  let columnCount = 0;
  for (const { offset, shape } of segments) {
    const size = shape.reduce((n, length) => n * length, 1);
    const isMatrix = shape.length > 1;
    const r = isMatrix ? (shape.at(-2) as number) : size;
    const c = isMatrix ? (shape.at(-1) as number) : 1;
    const stack = size === 0 ? 0 : size / (r * c);
    rows.push({ offset: rowCount, length: stack * r });
    columns.push({ offset: columnCount, length: isMatrix ? stack * c : 0 });
    shapes.push({ offset, r, c: isMatrix ? c : 0 });
    for (let row = 0; row < stack * r; row++) tasks.push(offset + row * c, c, 1, rowCount + row);
    for (let matrix = 0; matrix < stack; matrix++) {
      matrices.push(rowCount + matrix * r, r, columnCount + matrix * c, isMatrix ? c : 0);
      for (let column = 0; isMatrix && column < c; column++)
        tasks.push(
          offset + matrix * r * c + column,
          r,
          c,
          (columnCount + matrix * c + column) | isColumn,
        );
    }
    rowCount += stack * r;
    if (isMatrix) columnCount += stack * c;
    firstTasks.push(tasks.length / taskWords);
    firstMatrices.push(matrices.length / 4);
  }
  const places = shapes.flatMap(({ offset, r, c }, i) => [
    ...[offset, r, Math.max(c, 1), rows[i]?.offset as number],
    ...[rowCount + (columns[i]?.offset as number), Number(c > 0), 0, 0],
  ]);
  return {
    tasks: Uint32Array.from(tasks),
    matrices: Uint32Array.from(matrices),
    places: Uint32Array.from(places),
    rows,
    columns,
    firstTasks,
    firstMatrices,
    rowCount,
    columnCount,
  };
}

const moments = defineKernel({
  name: "factored-moments",
  bindings: [
    { name: "control", access: "read", dtypes: ["float32"] },
    { name: "gradients", access: "read" },
    { name: "tasks", access: "read", dtypes: ["uint32"] },
    { name: "rowVar", access: "readwrite", unit: 1, dtypes: ["float32"] },
    { name: "colVar", access: "readwrite", unit: 1, dtypes: ["float32"] },
  ],
  scalars: [
    { name: "first", type: "u32" },
    { name: "end", type: "u32" },
  ],
  body: () => `${linearMain(groupSize)}
  let i = s.first + index;
  if (i >= s.end) { return; }
  let control = load_control(0u);
  if (control.x == 0.0) { return; }
  let share = load_control(1u).y;
  let task = load_tasks(i);
  var total = 0.0;
  for (var k = 0u; k < task.y; k++) {
    let g = at_gradients(task.x + k * task.z) * control.x * control.y;
    total += g * g;
  }
  let now = total / f32(task.y);
  let at = task.w & 0x7fffffffu;
  if (task.w != at) {
    let old = load_colVar(at);
    store_colVar(at, old + share * (now - old));
  } else {
    let old = load_rowVar(at);
    store_rowVar(at, old + share * (now - old));
  }
}
`,
  workgroups: ({ first, end }) => linearWorkgroups((end as number) - (first as number), groupSize),
  reference([control, gradients, tasks, rowVar, colVar], { first, end }) {
    if (!control || !gradients || !tasks || !rowVar || !colVar || control[0] === 0) return;
    const factor = (control[0] as number) * (control[1] as number);
    const share = control[5] as number;
    for (let i = first as number; i < (end as number); i++) {
      const [from, count, stride, place] = tasks.subarray(
        i * taskWords,
        (i + 1) * taskWords,
      ) as unknown as [number, number, number, number];
      let total = 0;
      for (let k = 0; k < count; k++)
        total += ((gradients[from + k * stride] as number) * factor) ** 2;
      const at = place % isColumn;
      const state: KernelView = place >= isColumn ? colVar : rowVar;
      state[at] = (state[at] as number) + share * (total / count - (state[at] as number));
    }
  },
});

const shares = defineKernel({
  name: "factored-shares",
  bindings: [
    { name: "control", access: "read", dtypes: ["float32"] },
    { name: "matrices", access: "read", dtypes: ["uint32"] },
    { name: "rowVar", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "colVar", access: "read", unit: 1, dtypes: ["float32"] },
    { name: "factored", access: "readwrite", unit: 1, dtypes: ["float32"] },
  ],
  scalars: [
    { name: "first", type: "u32" },
    { name: "end", type: "u32" },
    { name: "rowCount", type: "u32" },
    { name: "eps1", type: "f32", runtime: true },
  ],
  body: () => `var<workgroup> gathered: array<f32, ${groupSize}>;
@compute @workgroup_size(${groupSize})
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) local: u32) {
  let i = s.first + group.x + group.y * groups.x;
  if (i >= s.end) { return; }
  let control = load_control(0u);
  if (control.x == 0.0) { return; }
  let matrix = load_matrices(i);
  var total = 0.0;
  for (var row = local; row < matrix.y; row += ${groupSize}u) { total += load_rowVar(matrix.x + row); }
  gathered[local] = total;
  workgroupBarrier();
  total = 0.0;
  for (var k = 0u; k < ${groupSize}u; k++) { total += gathered[k]; }
  var divisor = 1.0;
  if (matrix.w > 0u) { divisor = max(total / f32(matrix.y), s.eps1); }
  for (var row = local; row < matrix.y; row += ${groupSize}u) {
    store_factored(matrix.x + row, load_rowVar(matrix.x + row) / divisor);
  }
  for (var column = local; column < matrix.w; column += ${groupSize}u) {
    store_factored(s.rowCount + matrix.z + column, load_colVar(matrix.z + column));
  }
}
`,
  workgroups: ({ first, end }) => linearWorkgroups((end as number) - (first as number), 1),
  reference([control, matrices, rowVar, colVar, factored], { first, end, rowCount, eps1 }) {
    if (!control || !matrices || !rowVar || !colVar || !factored || control[0] === 0) return;
    for (let i = first as number; i < (end as number); i++) {
      const [rowBase, rows, columnBase, columns] = matrices.subarray(
        i * 4,
        (i + 1) * 4,
      ) as unknown as [number, number, number, number];
      let total = 0;
      for (let row = 0; row < rows; row++) total += rowVar[rowBase + row] as number;
      const divisor = columns > 0 ? Math.max(total / rows, eps1 as number) : 1;
      for (let row = 0; row < rows; row++)
        factored[rowBase + row] = (rowVar[rowBase + row] as number) / divisor;
      for (let column = 0; column < columns; column++)
        factored[(rowCount as number) + columnBase + column] = colVar[
          columnBase + column
        ] as number;
    }
  },
});

/** Buffers of a {@link FactoredLayout}. */
export interface FactoredBuffers<B> {
  readonly tasks: Binding<B>;
  readonly matrices: Binding<B>;
  /** float32, one for each row. */
  readonly rowVar: Binding<B>;
  /** float32, one for each column. */
  readonly colVar: Binding<B>;
  /** float32, `rowCount + columnCount`: rows divided by their matrix's mean, and columns. */
  readonly factored: Binding<B>;
}

/**
 * Updates the moments of rows and columns by the mean squares of the gradients, and divides rows by the mean of their matrix
 * (at least `eps1`): two launches. A skipped step changes nothing.
 */
export function factoredMoments<B>(
  target: LaunchTarget<B>,
  operands: FactoredBuffers<B> & {
    readonly gradients: Binding<B>;
    readonly control: Binding<B>;
  },
  layout: FactoredLayout,
  ranges: readonly UpdateRange[],
  { eps1 }: { readonly eps1: number },
): void {
  const { gradients, control, tasks, matrices, rowVar, colVar, factored } = operands;
  const { firstTasks, firstMatrices, rowCount } = layout;
  for (const { firstSegment, endSegment } of ranges)
    target.launch({
      kernel: moments,
      bindings: [control, gradients, tasks, rowVar, colVar],
      scalars: {
        first: firstTasks[firstSegment] as number,
        end: firstTasks[endSegment] as number,
      },
    });
  for (const { firstSegment, endSegment } of ranges)
    target.launch({
      kernel: shares,
      bindings: [control, matrices, rowVar, colVar, factored],
      scalars: {
        first: firstMatrices[firstSegment] as number,
        end: firstMatrices[endSegment] as number,
        rowCount,
        eps1,
      },
    });
}
