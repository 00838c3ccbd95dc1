import { philox4x32 } from "@halfstep/formats/philox";

/** Points of two interleaved half circles. */
export interface Moons {
  /** x and y of each point. */
  readonly points: Float32Array;
  readonly labels: Uint32Array;
}

/** The part of the plane that is drawn. */
export const plane = { left: -1.7, right: 2.7, bottom: -1.35, top: 1.85 } as const;

/** Points of the drawn grid on each side. */
export const gridSize = 64;

/** Points in all. */
export const pointCount = 256;

const noise = 0.11;

/** Points of two moons, the same for the same seed on every machine. */
export function twoMoons(seed: number): Moons {
  const points = new Float32Array(2 * pointCount);
  const labels = new Uint32Array(pointCount);
  for (let i = 0; i < pointCount; i++) {
    const [a, b, c] = philox4x32([i, 0, 0, 0], [seed, 0]);
    const label = i % 2;
    const angle = Math.PI * (a / 2 ** 32);
    // Box and Muller: two normal numbers from two uniform ones.
    const radius = noise * Math.sqrt(-2 * Math.log((b + 1) / 2 ** 32));
    const turn = 2 * Math.PI * (c / 2 ** 32);
    const x = label === 0 ? Math.cos(angle) : 1 - Math.cos(angle);
    const y = label === 0 ? Math.sin(angle) : 0.5 - Math.sin(angle);
    points[2 * i] = x + radius * Math.cos(turn);
    points[2 * i + 1] = y + radius * Math.sin(turn);
    labels[i] = label;
  }
  return { points, labels };
}
