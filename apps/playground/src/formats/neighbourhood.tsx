import type { VNode } from "preact";
import { useWidth } from "../charts/use-width.js";
import type { Layout } from "./layouts.js";
import { numberText } from "./number-text.js";

interface NeighbourhoodProps {
  readonly layout: Layout;
  readonly wished: number;
  readonly stored: number;
}

const height = 92;
const line = 50;

/** The numbers of a format around a number: a ruler on which the wish falls between two ticks. */
export function Neighbourhood({ layout, wished, stored }: NeighbourhoodProps): VNode {
  const [ref, width] = useWidth<HTMLDivElement>(600);
  const { real } = layout;
  const spacing = real.ulp(stored);
  const numbers = numbersAround(layout, stored, 4);
  const reach = 3.4 * spacing;
  const x = (value: number): number => width / 2 + ((value - stored) / reach) * (width / 2);
  const near = numbers.filter((value) => Math.abs(value - stored) < reach);
  const labels = labelsOf(near, stored, width, x);
  const gap = wished - stored;
  const shown = Math.abs(gap) < reach ? x(wished) : undefined;
  return (
    <div class="neighbourhood" ref={ref}>
      <svg
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="img"
        aria-label={`Numbers of ${layout.name} around ${numberText(stored, 12)}: the one below is ${numberText(real.nextDown(stored), 12)}, the one above ${numberText(real.nextUp(stored), 12)}.`}
      >
        <line class="base" x1={0} x2={width} y1={line} y2={line} />
        {near.map((value) => (
          <line
            key={value}
            class={value === stored ? "tick stored" : "tick"}
            x1={x(value)}
            x2={x(value)}
            y1={line - (value === stored ? 16 : 10)}
            y2={line + 10}
          />
        ))}
        {labels.map(({ value, text }) => (
          <text
            key={value}
            class={value === stored ? "stored" : ""}
            x={x(value)}
            y={line + 28}
            text-anchor="middle"
          >
            {text}
          </text>
        ))}
        {shown !== undefined && gap !== 0 && (
          <>
            <line class="gap" x1={shown} x2={x(stored)} y1={line - 22} y2={line - 22} />
            <path class="wish" d={`M${shown} ${line - 4}l-6 -13h12z`} />
          </>
        )}
        {shown !== undefined && (
          <text
            class="wish"
            x={Math.min(Math.max(shown, 60), width - 60)}
            y={line - 30}
            text-anchor="middle"
          >
            {gap === 0 ? "stored exactly" : "your number"}
          </text>
        )}
      </svg>
    </div>
  );
}

/** Pixels of a digit in a label, and between two labels. */
const digitWidth = 7.4;
const labelGap = 8;

interface Label {
  readonly value: number;
  readonly text: string;
}

/** The names of ticks that have room: that of the stored number, and on both sides as many as cover neither each other nor the edge. */
export function labelsOf(
  near: readonly number[],
  stored: number,
  width: number,
  x: (value: number) => number,
): readonly Label[] {
  const labels = near.map((value) => ({ value, text: numberText(value, width > 560 ? 6 : 5) }));
  const widest = digitWidth * Math.max(...labels.map(({ text }) => text.length));
  const distances = near.slice(1).map((value, i) => x(value) - x(near[i] as number));
  const stride = Math.ceil((widest + labelGap) / Math.min(...distances));
  const middle = near.indexOf(stored);
  return labels.filter(({ value, text }, i) => {
    const half = (digitWidth * text.length) / 2;
    const isInside = x(value) >= half && x(value) <= width - half;
    return value === stored || ((i - middle) % stride === 0 && isInside);
  });
}

/** The format's numbers next to one of them, in order. */
function numbersAround({ real }: Layout, stored: number, count: number): number[] {
  const numbers = [stored];
  for (let i = 0; i < count; i++) {
    const below = real.nextDown(numbers[0] as number);
    const above = real.nextUp(numbers[numbers.length - 1] as number);
    if (Number.isFinite(below) && below < (numbers[0] as number)) numbers.unshift(below);
    if (Number.isFinite(above) && above > (numbers[numbers.length - 1] as number))
      numbers.push(above);
  }
  return numbers;
}
