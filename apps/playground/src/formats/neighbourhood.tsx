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
        {near
          .filter((_, i) => width > 560 || near[i] === stored || i % 2 === near.indexOf(stored) % 2)
          .map((value) => (
            <text
              key={value}
              class={value === stored ? "stored" : ""}
              x={x(value)}
              y={line + 28}
              text-anchor="middle"
            >
              {numberText(value, width > 560 ? 6 : 5)}
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
