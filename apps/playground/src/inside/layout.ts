import type { LaunchView } from "./step-view.js";

/** A rectangle of the drawing, in pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** A band of the drawing: the launches of one module. */
interface Band extends Pick<Box, "top" | "height"> {
  readonly label: string;
}

/** A value on its way from the launch that writes it to one that reads it. */
export interface Edge {
  readonly from: number;
  readonly to: number;
  /** Of the `from`: the operand of `to` that it is. */
  readonly operand: number;
  readonly path: string;
}

/** Where everything is drawn. */
export interface Layout {
  readonly height: number;
  readonly bands: readonly Band[];
  /** In the order of the launches. */
  readonly boxes: readonly Box[];
  readonly edges: readonly Edge[];
}

const boxHeight = 28;
const gap = 5;
const bandHead = 26;
const bandGap = 10;

/**
 * Places a step in a drawing of this width: the forward pass goes down on the left, the backward pass comes up on the right, and each
 * module has a band of its own. Weights are updated on top, where the backward pass ends.
 */
export function layoutOf(launches: readonly LaunchView[], width: number): Layout {
  const side = width < 560 ? 10 : 30;
  const gutter = Math.min(Math.max(width * 0.16, 28), 150);
  const boxWidth = (width - 2 * side - gutter) / 2;
  const isLeft = ({ part }: LaunchView): boolean => part === "forward";
  const boxes: Box[] = [];
  const bands: Band[] = [];
  let top = 0;
  for (const { label, members } of bandsOf(launches)) {
    const left = members.filter((i) => isLeft(launches[i] as LaunchView));
    // Time goes upwards on the right.
    const right = members.filter((i) => !isLeft(launches[i] as LaunchView)).reverse();
    const first = top + bandHead;
    for (const [column, x] of [
      [left, side],
      [right, side + boxWidth + gutter],
    ] as const)
      for (const [k, i] of column.entries())
        boxes[i] = {
          ...{ left: x, top: first + k * (boxHeight + gap) },
          ...{ width: boxWidth, height: boxHeight },
        };
    const rows = Math.max(left.length, right.length);
    const height = bandHead + rows * (boxHeight + gap) + gap;
    bands.push({ label, top, height });
    top += height + bandGap;
  }
  const edges = launches.flatMap(({ operands }, to) => edgesTo(operands, to, boxes, width));
  return { height: top - bandGap, bands, boxes, edges };
}

const weights = "weights, loss scale, optimizer";
const loss = "loss";

/** The launches of each band, from the top: the order in which the forward pass reaches the modules. */
function bandsOf(
  launches: readonly LaunchView[],
): readonly { readonly label: string; readonly members: readonly number[] }[] {
  const labels = labelsOf(launches);
  const isForward = (i: number): boolean => launches[i]?.part === "forward";
  const inOrder = [...labels.keys()].sort((a, b) => Number(isForward(b)) - Number(isForward(a)));
  const inner = new Set(inOrder.map((i) => labels[i] as string));
  for (const label of [weights, loss]) inner.delete(label);
  return [weights, ...inner, loss]
    .map((label) => ({
      label,
      members: labels.flatMap((own, i) => (own === label ? [i] : [])),
    }))
    .filter(({ members }) => members.length > 0);
}

/**
 * The band of each launch: its module. What no module computes stands with the one before it in the forward pass, such as the ReLU
 * between two layers; behind the last module is the loss.
 */
function labelsOf(launches: readonly LaunchView[]): readonly string[] {
  const labels = launches.map(({ part, module }) => (part === "update" ? weights : module));
  const fill = (part: LaunchView["part"], order: readonly number[]): void => {
    const own = order.filter((i) => launches[i]?.part === part);
    const last = own.findLastIndex((i) => labels[i] !== "");
    let before = loss;
    for (const [k, i] of own.entries()) {
      if (labels[i] === "") labels[i] = k > last ? loss : before;
      before = labels[i] as string;
    }
  };
  const forwards = [...launches.keys()];
  fill("forward", forwards);
  fill("backward", forwards.toReversed());
  return labels;
}

/** One edge from each launch that wrote something that this one reads. */
function edgesTo(
  operands: LaunchView["operands"],
  to: number,
  boxes: readonly Box[],
  width: number,
): Edge[] {
  const seen = new Set<number>();
  return operands.flatMap(({ writer }, operand) => {
    if (writer === undefined || seen.has(writer)) return [];
    seen.add(writer);
    const path = pathBetween(boxes[writer] as Box, boxes[to] as Box, width);
    return [{ from: writer, to, operand, path }];
  });
}

/** Across the gutter from one column to the other; along the outer edge within a column. */
function pathBetween(a: Box, b: Box, width: number): string {
  const [y1, y2] = [a.top + a.height / 2, b.top + b.height / 2];
  const isLeft = a.left < width / 2;
  if (isLeft === b.left < width / 2) {
    const x = isLeft ? a.left : a.left + a.width;
    const reach = Math.min(6 + Math.abs(y2 - y1) / 9, isLeft ? a.left : width - x);
    const bend = round(isLeft ? x - reach : x + reach);
    return `M${round(x)} ${y1}C${bend} ${y1} ${bend} ${y2} ${round(x)} ${y2}`;
  }
  const [x1, x2] = isLeft ? [a.left + a.width, b.left] : [a.left, b.left + b.width];
  const middle = round((x1 + x2) / 2);
  return `M${round(x1)} ${y1}C${middle} ${y1} ${middle} ${y2} ${round(x2)} ${y2}`;
}

const round = (x: number): number => Math.round(10 * x) / 10;

/** A key that moves through the drawing. */
export type Direction = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

/** The box next to another in a direction: in its column, or at its height in the other column. */
export function neighbourOf(boxes: readonly Box[], from: number, direction: Direction): number {
  const start = boxes[from];
  if (!start) return from;
  const isAcross = direction === "ArrowLeft" || direction === "ArrowRight";
  const isWanted = (box: Box): boolean => {
    if (direction === "ArrowLeft") return box.left < start.left;
    if (direction === "ArrowRight") return box.left > start.left;
    const isBelow = box.top > start.top;
    return (
      box.left === start.left && box.top !== start.top && isBelow === (direction === "ArrowDown")
    );
  };
  let [best, distance] = [from, Infinity];
  for (const [i, box] of boxes.entries()) {
    const away = Math.abs(box.top - start.top);
    if (!isWanted(box) || away >= distance) continue;
    [best, distance] = [i, away];
  }
  return isAcross || best !== from ? best : from;
}
