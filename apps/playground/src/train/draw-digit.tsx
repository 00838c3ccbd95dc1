import type { VNode } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { percentText } from "../formats/number-text.js";
import type { TrainConfig } from "./config.js";
import { setupOf } from "./setups.js";
import type { TrainingControls } from "./use-training.js";

interface DrawDigitProps {
  readonly config: TrainConfig;
  readonly controls: TrainingControls;
}

const side = 28;

/** A field to draw a digit in, and what each lane reads. By keyboard: arrows move, space draws. */
export function DrawDigit({ config, controls }: DrawDigitProps): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const pixels = useRef(new Float32Array(side * side));
  const pen = useRef({ x: 14, y: 6 });
  const { probabilities } = controls.training;
  const redraw = (): void => paint(canvas.current, pixels.current, pen.current);
  useEffect(redraw, []);
  const inkAt = (x: number, y: number): void => {
    ink(pixels.current, x, y);
    redraw();
  };
  const onPointer = (event: PointerEvent): void => {
    if (event.buttons === 0) return;
    const box = (event.currentTarget as Element).getBoundingClientRect();
    inkAt(
      ((event.clientX - box.left) / box.width) * side,
      ((event.clientY - box.top) / box.height) * side,
    );
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Readonly<Record<string, readonly [number, number]>> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
      " ": [0, 0],
    };
    const move = moves[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const { x, y } = pen.current;
    pen.current = {
      x: Math.min(Math.max(x + move[0], 0), side - 1),
      y: Math.min(Math.max(y + move[1], 0), side - 1),
    };
    if (event.key === " " || event.shiftKey)
      ink(pixels.current, pen.current.x + 0.5, pen.current.y + 0.5);
    redraw();
  };
  const clear = (): void => {
    pixels.current.fill(0);
    redraw();
  };
  return (
    <section class="toy" aria-labelledby="draw">
      <h2 id="draw">Draw your own</h2>
      <p>Draw a digit, large and in the middle. By keyboard: arrows move, with shift they draw.</p>
      <div class="drawing">
        {/* biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: arrow keys draw in it */}
        <canvas
          ref={canvas}
          width={10 * side}
          height={10 * side}
          role="application"
          tabIndex={0}
          aria-label="A field to draw a digit in: arrow keys move, with shift they draw"
          onPointerDown={onPointer}
          onPointerMove={onPointer}
          onKeyDown={onKeyDown}
        />
        <div>
          <p class="controls">
            <button
              type="button"
              class="main"
              onClick={() => controls.classify(pixels.current.slice())}
            >
              Read it
            </button>
            <button type="button" onClick={clear}>
              Clear
            </button>
          </p>
          <ul class="readings" aria-live="polite">
            {config.setups.map((id, i) => (
              <li key={id}>
                <b>{setupOf(id).label}</b> {readingText(probabilities[i])}
              </li>
            ))}
          </ul>
        </div>
      </div>
    </section>
  );
}

function readingText(probabilities: Float32Array | undefined): string {
  if (probabilities === undefined) return "has not read anything yet";
  const largest = Math.max(...probabilities);
  if (Number.isNaN(largest)) return "reads NaN";
  return `reads ${probabilities.indexOf(largest)}, ${percentText(largest)} sure`;
}

/** A soft pen of about two pixels. */
function ink(pixels: Float32Array, x: number, y: number): void {
  for (let row = Math.floor(y) - 2; row <= y + 2; row++) {
    for (let column = Math.floor(x) - 2; column <= x + 2; column++) {
      if (row < 0 || column < 0 || row >= side || column >= side) continue;
      const distance = Math.hypot(column + 0.5 - x, row + 0.5 - y);
      const i = row * side + column;
      pixels[i] = Math.max(pixels[i] as number, Math.min(Math.max(1.9 - distance, 0), 1));
    }
  }
}

function paint(
  canvas: HTMLCanvasElement | null,
  pixels: Float32Array,
  pen: { x: number; y: number },
): void {
  const context = canvas?.getContext("2d");
  if (!canvas || !context) return;
  const style = getComputedStyle(canvas);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = style.color;
  for (let i = 0; i < pixels.length; i++) {
    context.globalAlpha = pixels[i] as number;
    context.fillRect(10 * (i % side), 10 * Math.floor(i / side), 10, 10);
  }
  context.globalAlpha = 1;
  context.strokeStyle = style.outlineColor;
  context.strokeRect(10 * pen.x + 0.5, 10 * pen.y + 0.5, 9, 9);
}
