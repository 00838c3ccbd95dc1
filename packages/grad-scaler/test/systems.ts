import type { ScaleRule, ScalerPreset } from "../src/index.js";

/** A loss scaler of another system: the scale after a step, or `"raises"` where that system ends the run. */
type Update = (overflow: boolean) => number | "raises";

export interface System {
  readonly preset: ScalerPreset;
  readonly options: Partial<ScaleRule>;
  start(): Update;
}

const f32 = Math.fround;

/**
 * The systems that presets reproduce, written down once more from what their sources do, in their own terms (iteration
 * numbers, not counters), and with windows so short that traces reach everything.
 */
export const systems: Readonly<Record<string, System>> = {
  "torch 2.13, _amp_update_scale_": {
    preset: "torch",
    options: { growthInterval: 5 },
    start() {
      let scale = 65536;
      let tracker = 0;
      return (overflow) => {
        if (overflow) {
          scale = f32(scale * 0.5);
          tracker = 0;
        } else if (tracker + 1 === 5) {
          const grown = f32(scale * 2);
          if (Number.isFinite(grown)) scale = grown;
          tracker = 0;
        } else tracker += 1;
        return scale;
      };
    },
  },

  "apex.amp, LossScaler": {
    preset: "apex",
    options: { growthInterval: 5 },
    start() {
      let scale = 2 ** 16;
      let unskipped = 0;
      return (overflow) => {
        if (overflow) {
          scale /= 2;
          unskipped = 0;
        } else unskipped += 1;
        if (unskipped === 5) {
          scale = Math.min(2 ** 24, scale * 2);
          unskipped = 0;
        }
        return scale;
      };
    },
  },

  "apex.amp, LossScaler with min_loss_scale": {
    preset: "apex",
    options: { growthInterval: 4, minScale: 2 ** 14, initScale: 2 ** 15 },
    start() {
      let scale = 2 ** 15;
      let unskipped = 0;
      return (overflow) => {
        scale = overflow ? Math.max(2 ** 14, scale / 2) : scale;
        unskipped = overflow ? 0 : unskipped + 1;
        if (unskipped < 4) return scale;
        scale = Math.min(2 ** 24, scale * 2);
        unskipped = 0;
        return scale;
      };
    },
  },

  "apex, update_scale_hysteresis": {
    preset: "apexHysteresis",
    options: { growthInterval: 5, hysteresis: 3 },
    start() {
      let scale = 65536;
      let tracker = 0;
      let hysteresis = 3;
      return (overflow) => {
        if (overflow) {
          hysteresis -= 1;
          tracker = 0;
          if (hysteresis <= 0) scale = f32(scale * 0.5);
          return scale;
        }
        tracker += 1;
        if (tracker === 5) {
          scale = f32(scale * 2);
          tracker = 0;
        }
        hysteresis = 3;
        return scale;
      };
    },
  },

  "apex.fp16_utils, DynamicLossScaler": {
    preset: "apexFp16Utils",
    options: { growthInterval: 5 },
    start() {
      let scale = 2 ** 32;
      let iteration = 0;
      let lastOverflow = -1;
      return (overflow) => {
        if (overflow) {
          scale = Math.max(scale / 2, 1);
          lastOverflow = iteration;
        } else if ((iteration - lastOverflow) % 5 === 0) scale *= 2;
        iteration += 1;
        return scale;
      };
    },
  },

  "Megatron-LM, DynamicGradScaler": {
    preset: "megatron",
    options: { growthInterval: 5, hysteresis: 3 },
    start() {
      let scale = 2 ** 32;
      let tracker = 0;
      let hysteresis = 3;
      return (overflow) => {
        if (overflow) {
          tracker = 0;
          hysteresis -= 1;
          if (hysteresis <= 0) scale = Math.max(scale * 0.5, 1);
          return scale;
        }
        tracker += 1;
        if (tracker === 5) {
          tracker = 0;
          hysteresis = 3;
          scale *= 2;
        }
        return scale;
      };
    },
  },

  "DeepSpeed, DynamicLossScaler": {
    preset: "deepspeed",
    options: { growthInterval: 4, initScale: 16 },
    start: () => deepspeed({ shift: 2, isConsecutive: false }),
  },
  "DeepSpeed, DynamicLossScaler with delayed_shift 3": {
    preset: "deepspeed",
    options: { growthInterval: 4, initScale: 16, hysteresis: 3 },
    start: () => deepspeed({ shift: 3, isConsecutive: false }),
  },
  "DeepSpeed, DynamicLossScaler with delayed_shift 1": {
    preset: "deepspeed",
    options: { growthInterval: 4, initScale: 16, hysteresis: 1 },
    start: () => deepspeed({ shift: 1, isConsecutive: false }),
  },
  "DeepSpeed, DynamicLossScaler with consecutive_hysteresis": {
    preset: "deepspeed",
    options: { growthInterval: 4, initScale: 16, hysteresis: 3, hysteresisRefill: "clean" },
    start: () => deepspeed({ shift: 3, isConsecutive: true }),
  },

  "DeepSpeed, FP16_Optimizer": {
    preset: "deepspeedFp16Optimizer",
    options: { growthInterval: 4, initScale: 64 },
    start() {
      let scale = 64;
      let iteration = 0;
      let lastOverflow = -1;
      return (overflow) => {
        if (overflow) {
          scale = Math.max(scale / 2, 1);
          lastOverflow = iteration;
        } else {
          const stable = iteration - lastOverflow - 1;
          if (stable > 0 && stable % 4 === 0) scale *= 2;
        }
        iteration += 1;
        return scale;
      };
    },
  },

  "fairseq, DynamicLossScaler": {
    preset: "fairseq",
    options: { growthInterval: 4, initScale: 2 ** -8 },
    start: () => fairseq({ scale: 2 ** -8, tolerance: 0 }),
  },
  "fairseq, DynamicLossScaler with tolerance 0.3": {
    preset: "fairseq",
    options: { growthInterval: 4, initScale: 2 ** -8, tolerance: 0.3 },
    start: () => fairseq({ scale: 2 ** -8, tolerance: 0.3 }),
  },
  "fairseq, DynamicLossScaler with tolerance 0.2": {
    preset: "fairseq",
    options: { growthInterval: 5, initScale: 2 ** 4, tolerance: 0.2 },
    start: () => fairseq({ scale: 2 ** 4, tolerance: 0.2, window: 5 }),
  },
  "fairseq, DynamicLossScaler with threshold 2": {
    preset: "fairseq",
    options: { growthInterval: 4, initScale: 8, minScale: 2, atFloor: "clamp", tolerance: 0.1 },
    start: () => fairseq({ scale: 8, tolerance: 0.1, threshold: 2 }),
  },

  "jmp, DynamicLossScale": {
    preset: "jmp",
    options: { growthInterval: 5, initScale: 16 },
    start() {
      let scale = 16;
      let counter = 0;
      return (overflow) => {
        if (overflow) scale = Math.max(1, scale / 2);
        else if (counter === 4 && Number.isFinite(f32(scale * 2))) scale *= 2;
        counter = overflow ? 0 : (counter + 1) % 5;
        return scale;
      };
    },
  },

  "Keras, LossScaleOptimizer": {
    preset: "keras",
    options: { growthInterval: 5 },
    start() {
      let scale = 2 ** 15;
      let counter = 0;
      return (overflow) => {
        if (overflow) {
          counter = 0;
          scale /= 2;
        } else if (counter === 4) {
          counter = 0;
          scale *= 2;
        } else counter += 1;
        return scale;
      };
    },
  },

  "the seed documents' rule": {
    preset: "paper",
    options: { growthInterval: 5 },
    start() {
      let scale = 2 ** 24;
      let clean = 0;
      return (overflow) => {
        clean = overflow ? 0 : clean + 1;
        if (overflow) scale = Math.max(scale / 2, 2 ** -16);
        else if (clean % 5 === 0) scale *= 2;
        return scale;
      };
    },
  },

  "a static scale": {
    preset: "static",
    options: { initScale: 128 },
    start: () => () => 128,
  },
};

function deepspeed({ shift, isConsecutive }: { shift: number; isConsecutive: boolean }): Update {
  const window = 4;
  const least = 1;
  let scale = 16;
  let iteration = 0;
  let lastOverflow = -1;
  let hysteresis = shift;
  return (overflow) => {
    if (overflow) {
      if (shift > 1 && hysteresis > 1) hysteresis -= 1;
      else if (scale === least) return "raises";
      else scale = Math.max(scale / 2, least);
      lastOverflow = iteration;
    } else {
      if (isConsecutive) hysteresis = shift;
      if ((iteration - lastOverflow) % window === 0) {
        if (!isConsecutive) hysteresis = shift;
        scale *= 2;
      }
    }
    iteration += 1;
    return scale;
  };
}

function fairseq({
  scale: start,
  tolerance,
  threshold = 0,
  window = 4,
}: {
  scale: number;
  tolerance: number;
  threshold?: number;
  window?: number;
}): Update {
  let scale = start;
  let iteration = 0;
  let lastOverflow = -1;
  let lastRescale = -1;
  let overflows = 0;
  return (overflow) => {
    if (overflow) {
      const before = scale;
      const since = iteration - lastRescale;
      lastOverflow = iteration;
      overflows += 1;
      if (overflows / since >= tolerance) {
        scale = Math.max(scale / 2, threshold);
        lastRescale = iteration;
        overflows = 0;
      }
      if (scale <= 1e-4) {
        scale = before;
        return "raises";
      }
    } else if ((iteration - lastOverflow) % window === 0) {
      scale *= 2;
      lastRescale = iteration;
    }
    iteration += 1;
    return scale;
  };
}
