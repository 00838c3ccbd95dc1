/**
 * Every optimizer in float64, one parameter at a time, written from the papers and from torch's and apex's documentation: what
 * the kernels are compared with.
 */

/** One parameter: its numbers, and where a row of its last axis ends. */
interface ReferenceParameter {
  readonly shape: readonly number[];
  values: number[];
}

/** Steps all parameters by their gradients; `t` counts applied steps from 1. */
export type ReferenceStep = (
  parameters: readonly ReferenceParameter[],
  gradients: readonly (readonly number[])[],
  t: number,
  lr: number,
) => void;

type Options = Readonly<Record<string, unknown>>;

const norm = (x: readonly number[]): number => Math.sqrt(x.reduce((sum, v) => sum + v * v, 0));

/** Numbers of an option with a default. */
const num = (options: Options, name: string, otherwise: number): number =>
  (options[name] as number | undefined) ?? otherwise;

const betasOf = (options: Options, otherwise: [number, number] = [0.9, 0.999]) =>
  (options.betas as [number, number] | undefined) ?? otherwise;

/** The numbers that parameter i has in `states`, zeros at first. */
function stateOf(states: number[][], i: number, { values }: ReferenceParameter): number[] {
  states[i] ??= values.map(() => 0);
  return states[i];
}

type ElementRule = (p: number, g: number, state: number[], t: number, lr: number) => number;

/** A rule that looks at one element at a time. */
const elementwise = (options: Options, rule: ElementRule): ReferenceStep => {
  const states: number[][][] = [];
  return (parameters, gradients, t, lr) => {
    for (const [i, parameter] of parameters.entries()) {
      states[i] ??= parameter.values.map(() => [0, 0, 0]);
      parameter.values = parameter.values.map((p, e) => {
        const g = (gradients[i]?.[e] as number) * (options.maximize ? -1 : 1);
        return rule(p, g, states[i]?.[e] as number[], t, lr);
      });
    }
  };
};

type Make = (options: Options) => ReferenceStep;

const adam =
  (isDecoupled: boolean): Make =>
  (options) => {
    const [b1, b2] = betasOf(options);
    const eps = num(options, "eps", 1e-8);
    const decay = num(options, "weightDecay", isDecoupled ? 0.01 : 0);
    return elementwise(options, (p, gradient, s, t, lr) => {
      const g = isDecoupled ? gradient : gradient + decay * p;
      const start = isDecoupled ? p - lr * decay * p : p;
      s[0] = b1 * (s[0] as number) + (1 - b1) * g;
      s[1] = b2 * (s[1] as number) + (1 - b2) * g * g;
      s[2] = Math.max(s[2] as number, s[1]);
      const average = options.biasCorrection === false ? s[0] : s[0] / (1 - b1 ** t);
      const v = (options.amsgrad ? s[2] : s[1]) as number;
      const variance = options.biasCorrection === false ? v : v / (1 - b2 ** t);
      return start - (lr * average) / (Math.sqrt(variance) + eps);
    });
  };

const sgd: Make = (options) => {
  const momentum = num(options, "momentum", 0);
  const dampening = num(options, "dampening", 0);
  const decay = num(options, "weightDecay", 0);
  return elementwise(options, (p, gradient, s, t, lr) => {
    const late = options.wdAfterMomentum ? decay * p : 0;
    const g = options.wdAfterMomentum ? gradient : gradient + decay * p;
    if (momentum === 0) return p - lr * (g + late);
    s[0] = t === 1 ? g : momentum * (s[0] as number) + (1 - dampening) * g;
    return p - lr * ((options.nesterov ? g + momentum * s[0] : s[0]) + late);
  });
};

const adamax: Make = (options) => {
  const [b1, b2] = betasOf(options);
  const eps = num(options, "eps", 1e-8);
  const decay = num(options, "weightDecay", 0);
  return elementwise(options, (p, gradient, s, t, lr) => {
    const g = gradient + decay * p;
    s[0] = b1 * (s[0] as number) + (1 - b1) * g;
    s[1] = Math.max(b2 * (s[1] as number), Math.abs(g) + eps);
    return p - ((lr / (1 - b1 ** t)) * s[0]) / s[1];
  });
};

const nadam: Make = (options) => {
  const [b1, b2] = betasOf(options);
  const eps = num(options, "eps", 1e-8);
  const decay = num(options, "weightDecay", 0);
  const momentumDecay = num(options, "momentumDecay", 4e-3);
  const mu = (t: number): number => b1 * (1 - 0.5 * 0.96 ** (t * momentumDecay));
  const product = (t: number): number => {
    let all = 1;
    for (let i = 1; i <= t; i++) all *= mu(i);
    return all;
  };
  const products: number[] = [];
  return elementwise(options, (p, gradient, s, t, lr) => {
    const g = options.decoupledWeightDecay ? gradient : gradient + decay * p;
    const start = options.decoupledWeightDecay ? p * (1 - lr * decay) : p;
    s[0] = b1 * (s[0] as number) + (1 - b1) * g;
    s[1] = b2 * (s[1] as number) + (1 - b2) * g * g;
    products[t] ??= product(t);
    const all = products[t];
    const average = (mu(t + 1) * s[0]) / (1 - all * mu(t + 1)) + ((1 - mu(t)) * g) / (1 - all);
    return start - (lr * average) / (Math.sqrt(s[1] / (1 - b2 ** t)) + eps);
  });
};

const radam: Make = (options) => {
  const [b1, b2] = betasOf(options);
  const eps = num(options, "eps", 1e-8);
  const decay = num(options, "weightDecay", 0);
  const most = 2 / (1 - b2) - 1;
  return elementwise(options, (p, gradient, s, t, lr) => {
    const g = options.decoupledWeightDecay ? gradient : gradient + decay * p;
    const start = options.decoupledWeightDecay ? p * (1 - lr * decay) : p;
    s[0] = b1 * (s[0] as number) + (1 - b1) * g;
    s[1] = b2 * (s[1] as number) + (1 - b2) * g * g;
    const mean = s[0] / (1 - b1 ** t);
    const rho = most - (2 * t * b2 ** t) / (1 - b2 ** t);
    if (rho <= 5) return start - lr * mean;
    const r = Math.sqrt(((rho - 4) * (rho - 2) * most) / ((most - 4) * (most - 2) * rho));
    return start - (lr * mean * r * Math.sqrt(1 - b2 ** t)) / (Math.sqrt(s[1]) + eps);
  });
};

const rmsprop: Make = (options) => {
  const alpha = num(options, "alpha", 0.99);
  const eps = num(options, "eps", 1e-8);
  const decay = num(options, "weightDecay", 0);
  const momentum = num(options, "momentum", 0);
  return elementwise(options, (p, gradient, s, _t, lr) => {
    const g = gradient + decay * p;
    s[0] = alpha * (s[0] as number) + (1 - alpha) * g * g;
    s[1] = alpha * (s[1] as number) + (1 - alpha) * g;
    const variance = options.centered ? s[0] - s[1] ** 2 : s[0];
    const step = g / (Math.sqrt(variance) + eps);
    s[2] = momentum * (s[2] as number) + step;
    return p - lr * (momentum > 0 ? s[2] : step);
  });
};

const adagrad: Make = (options) => {
  const eps = num(options, "eps", 1e-10);
  const decay = num(options, "weightDecay", 0);
  const initial = num(options, "initialAccumulatorValue", 0);
  return elementwise(options, (p, gradient, s, t, lr) => {
    const late = options.adagradWMode ? decay * p : 0;
    const g = options.adagradWMode ? gradient : gradient + decay * p;
    s[0] = (t === 1 ? initial : (s[0] as number)) + g * g;
    const rate = lr / (1 + (t - 1) * num(options, "lrDecay", 0));
    return p - rate * (g / (Math.sqrt(s[0]) + eps) + late);
  });
};

const adadelta: Make = (options) => {
  const rho = num(options, "rho", 0.9);
  const eps = num(options, "eps", 1e-6);
  const decay = num(options, "weightDecay", 0);
  return elementwise(options, (p, gradient, s, _t, lr) => {
    const g = gradient + decay * p;
    s[0] = rho * (s[0] as number) + (1 - rho) * g * g;
    const delta = (Math.sqrt((s[1] as number) + eps) / Math.sqrt(s[0] + eps)) * g;
    s[1] = rho * (s[1] as number) + (1 - rho) * delta * delta;
    return p - lr * delta;
  });
};

const asgd: Make = (options) => {
  const lambd = num(options, "lambd", 1e-4);
  const alpha = num(options, "alpha", 0.75);
  const decay = num(options, "weightDecay", 0);
  return elementwise(options, (p, gradient, _s, t, lr) => {
    const eta = lr / (1 + lambd * lr * (t - 1)) ** alpha;
    return p * (1 - lambd * eta) - eta * (gradient + decay * p);
  });
};

const rprop: Make = (options) => {
  const [minus, plus] = (options.etas as [number, number] | undefined) ?? [0.5, 1.2];
  const [least, most] = (options.stepSizes as [number, number] | undefined) ?? [1e-6, 50];
  const decay = num(options, "weightDecay", 0);
  return elementwise(options, (p, gradient, s, t, lr) => {
    const g = gradient + decay * p;
    const agreement = Math.sign(g) * Math.sign(s[0] as number);
    const factor = agreement > 0 ? plus : agreement < 0 ? minus : 1;
    s[1] = Math.min(Math.max((t === 1 ? lr : (s[1] as number)) * factor, least), most);
    s[0] = agreement < 0 ? 0 : g;
    return p - Math.sign(s[0]) * s[1];
  });
};

const lion: Make = (options) => {
  const [b1, b2] = betasOf(options, [0.9, 0.99]);
  const decay = num(options, "weightDecay", 0);
  return elementwise(options, (p, g, s, _t, lr) => {
    const direction = Math.sign(b1 * (s[0] as number) + (1 - b1) * g);
    s[0] = b2 * (s[0] as number) + (1 - b2) * g;
    return p - lr * (direction + decay * p);
  });
};

const lamb: Make = (options) => {
  const [b1, b2] = betasOf(options);
  const eps = num(options, "eps", 1e-6);
  const decay = num(options, "weightDecay", 0.01);
  const most = num(options, "maxGradNorm", 1);
  const b3 = options.gradAveraging === false ? 1 : 1 - b1;
  const isDecoupled = options.adamWMode !== false;
  const m: number[][] = [];
  const v: number[][] = [];
  return (parameters, gradients, t, lr) => {
    const all = norm(gradients.flat());
    const divisor = all > most ? all / most : 1;
    const [c1, c2] = options.biasCorrection === false ? [1, 1] : [1 - b1 ** t, 1 - b2 ** t];
    for (const [i, parameter] of parameters.entries()) {
      const mi = stateOf(m, i, parameter);
      const vi = stateOf(v, i, parameter);
      const step = parameter.values.map((p, e) => {
        let g = (gradients[i]?.[e] as number) / divisor;
        if (!isDecoupled) g += decay * p;
        mi[e] = b1 * (mi[e] as number) + b3 * g;
        vi[e] = b2 * (vi[e] as number) + (1 - b2) * g * g;
        const adam = mi[e] / c1 / (Math.sqrt(vi[e] / c2) + eps);
        return isDecoupled ? adam + decay * p : adam;
      });
      const sizes = [norm(parameter.values), norm(step)] as const;
      const adapts = (options.useNvlamb || decay !== 0) && sizes[0] !== 0 && sizes[1] !== 0;
      const rate = adapts ? (lr * sizes[0]) / sizes[1] : lr;
      parameter.values = parameter.values.map((p, e) => p - rate * (step[e] as number));
    }
  };
};

const novograd: Make = (options) => {
  const [b1, b2] = betasOf(options);
  const eps = num(options, "eps", 1e-8);
  const decay = num(options, "weightDecay", 0);
  const b3 = options.gradAveraging === false ? 1 : 1 - b1;
  const m: number[][] = [];
  const norms: number[] = [];
  return (parameters, gradients, t, lr) => {
    const [c1, c2] =
      options.biasCorrection === false ? [1, 1] : [1 - b1 ** t, Math.sqrt(1 - b2 ** t)];
    for (const [i, parameter] of parameters.entries()) {
      const own = gradients[i] as readonly number[];
      const isMax = options.normType === 0;
      const size = isMax ? Math.max(...own.map(Math.abs)) : norm(own);
      const before = norms[i] ?? (options.initZero ? 0 : size);
      const after = isMax
        ? b2 * before + (1 - b2) * size
        : Math.sqrt(b2 * before ** 2 + (1 - b2) * size ** 2);
      norms[i] = after;
      const mi = stateOf(m, i, parameter);
      const divisor = after / c2 + eps;
      parameter.values = parameter.values.map((p, e) => {
        const g = own[e] as number;
        if (options.regInsideMoment) {
          mi[e] = b1 * (mi[e] as number) + b3 * (g / divisor + decay * p);
          return p - (lr * mi[e]) / c1;
        }
        mi[e] = b1 * (mi[e] as number) + b3 * g;
        return p - lr * (mi[e] / c1 / divisor + decay * p);
      });
    }
  };
};

const bertAdam: Make = (options) => {
  const [b1, b2] = betasOf(options);
  const eps = num(options, "eps", 1e-6);
  const decay = num(options, "weightDecay", 0.01);
  const most = num(options, "maxGradNorm", 1);
  const total = num(options, "tTotal", -1);
  const warmup = Math.max(num(options, "warmup", -1), 0);
  const m: number[][] = [];
  const v: number[][] = [];
  return (parameters, gradients, t, lr) => {
    const progress = (t - 1) / total;
    const multiplier =
      total === -1
        ? 1
        : progress < warmup
          ? progress / warmup
          : options.schedule === "warmup_cosine"
            ? 0.5 * (1 + Math.cos((Math.PI * (progress - warmup)) / (1 - warmup)))
            : Math.max((progress - 1) / (warmup - 1), 0);
    for (const [i, parameter] of parameters.entries()) {
      const own = gradients[i] as readonly number[];
      const clip = most > 0 ? Math.min(1, most / (norm(own) + 1e-6)) : 1;
      const mi = stateOf(m, i, parameter);
      const vi = stateOf(v, i, parameter);
      parameter.values = parameter.values.map((p, e) => {
        const g = (own[e] as number) * clip;
        mi[e] = b1 * (mi[e] as number) + (1 - b1) * g;
        vi[e] = b2 * (vi[e] as number) + (1 - b2) * g * g;
        return p - lr * multiplier * (mi[e] / (Math.sqrt(vi[e]) + eps) + decay * p);
      });
    }
  };
};

/** apex's LARC around another reference. */
export const larc =
  (inner: Make): Make =>
  (options) => {
    const {
      trustCoefficient = 0.02,
      clip = true,
      larcEps = 1e-8,
    } = options as {
      trustCoefficient?: number;
      clip?: boolean;
      larcEps?: number;
    };
    const decay = num(options, "weightDecay", 0);
    const step = inner({ ...options, weightDecay: 0 });
    return (parameters, gradients, t, lr) => {
      const adapted = parameters.map(({ values }, i) => {
        const own = gradients[i] as readonly number[];
        const [size, slope] = [norm(values), norm(own)];
        if (size === 0 || slope === 0) return own;
        const local = (trustCoefficient * size) / (slope + size * decay + larcEps);
        const rate = clip ? Math.min(local / lr, 1) : local;
        return own.map((g, e) => (g + decay * (values[e] as number)) * rate);
      });
      step(parameters, adapted, t, lr);
    };
  };

const adafactor: Make = (options) => {
  const [eps1 = 2 ** -23, eps2] = (options.eps as [number | undefined, number] | undefined) ?? [
    undefined,
    1e-3,
  ];
  const d = num(options, "d", 1);
  const decay = num(options, "weightDecay", 0);
  const beta2Decay = num(options, "beta2Decay", -0.8);
  const states = new Map<number, { rows: number[]; columns: number[]; all: number[] }>();
  return (parameters, gradients, t, lr) => {
    for (const [i, parameter] of parameters.entries()) {
      const { shape, values } = parameter;
      const own = (gradients[i] as readonly number[]).map((g) => (options.maximize ? -g : g));
      const share = t ** beta2Decay;
      const alpha =
        Math.max(eps2, norm(values) / Math.sqrt(values.length)) * Math.min(lr, 1 / Math.sqrt(t));
      const mix = (old: number | undefined, now: number): number =>
        (1 - share) * (old ?? 0) + share * now;
      const state = states.get(i) ?? { rows: [], columns: [], all: [] };
      states.set(i, state);
      let estimate: number[];
      if (shape.length < 2) {
        state.all = own.map((g, e) => mix(state.all[e], g * g));
        estimate = state.all;
      } else {
        const [r, c] = shape.slice(-2) as [number, number];
        estimate = own.map(() => 0);
        for (let batch = 0; batch < own.length / (r * c); batch++) {
          const at = (row: number, column: number): number => batch * r * c + row * c + column;
          const square = (row: number, column: number): number =>
            (own[at(row, column)] as number) ** 2;
          for (let row = 0; row < r; row++) {
            let sum = 0;
            for (let column = 0; column < c; column++) sum += square(row, column);
            state.rows[batch * r + row] = mix(state.rows[batch * r + row], sum / c);
          }
          for (let column = 0; column < c; column++) {
            let sum = 0;
            for (let row = 0; row < r; row++) sum += square(row, column);
            state.columns[batch * c + column] = mix(state.columns[batch * c + column], sum / r);
          }
          const rows = state.rows.slice(batch * r, (batch + 1) * r);
          const mean = Math.max(rows.reduce((a, b) => a + b, 0) / r, eps1);
          for (let row = 0; row < r; row++)
            for (let column = 0; column < c; column++)
              estimate[at(row, column)] =
                ((rows[row] as number) * (state.columns[batch * c + column] as number)) / mean;
        }
      }
      const update = own.map((g, e) => g / Math.sqrt(Math.max(estimate[e] as number, eps1 ** 2)));
      const divisor = Math.max(1, norm(update) / (Math.sqrt(update.length) * d));
      parameter.values = values.map(
        (p, e) => p * (1 - lr * decay) - (alpha / divisor) * (update[e] as number),
      );
    }
  };
};

type Matrix = number[][];

const product = (a: Matrix, b: Matrix): Matrix =>
  a.map((row) =>
    (b[0] as number[]).map((_, j) => row.reduce((sum, v, k) => sum + v * (b[k]?.[j] as number), 0)),
  );

const transposed = (a: Matrix): Matrix =>
  (a[0] as number[]).map((_, j) => a.map((row) => row[j] as number));

const muon: Make = (options) => {
  const momentum = num(options, "momentum", 0.95);
  const decay = num(options, "weightDecay", 0.1);
  const eps = num(options, "eps", 1e-7);
  const steps = num(options, "nsSteps", 5);
  const [a, b, c] = (options.nsCoefficients as [number, number, number] | undefined) ?? [
    3.4445, -4.775, 2.0315,
  ];
  const buffers: number[][] = [];
  return (parameters, gradients, _t, lr) => {
    for (const [i, parameter] of parameters.entries()) {
      const [r, k] = parameter.shape as [number, number];
      const own = gradients[i] as readonly number[];
      const buffer = stateOf(buffers, i, parameter);
      const update = own.map((g, e) => {
        buffer[e] = (buffer[e] as number) * momentum + (1 - momentum) * g;
        return options.nesterov === false ? buffer[e] : g * (1 - momentum) + momentum * buffer[e];
      });
      const size = Math.max(norm(update), eps);
      let x: Matrix = Array.from({ length: r }, (_, row) =>
        update.slice(row * k, (row + 1) * k).map((v) => v / size),
      );
      if (r > k) x = transposed(x);
      for (let step = 0; step < steps; step++) {
        const gram = product(x, transposed(x));
        const square = product(gram, gram);
        const mixed = gram.map((row, y) =>
          row.map((v, z) => b * v + c * (square[y]?.[z] as number)),
        );
        const moved = product(mixed, x);
        x = x.map((row, y) => row.map((v, z) => a * v + (moved[y]?.[z] as number)));
      }
      if (r > k) x = transposed(x);
      const adjust =
        options.adjustLrFn === "match_rms_adamw"
          ? 0.2 * Math.sqrt(Math.max(r, k))
          : Math.sqrt(Math.max(1, r / k));
      const flat = x.flat();
      parameter.values = parameter.values.map(
        (p, e) => p * (1 - lr * decay) - lr * adjust * (flat[e] as number),
      );
    }
  };
};

export type OptimizerName =
  | "Adadelta"
  | "Adafactor"
  | "Adagrad"
  | "Adam"
  | "Adamax"
  | "AdamW"
  | "ASGD"
  | "BertAdam"
  | "LAMB"
  | "Lion"
  | "Muon"
  | "NAdam"
  | "NovoGrad"
  | "RAdam"
  | "RMSprop"
  | "Rprop"
  | "SGD";

export const references: Readonly<Record<OptimizerName, Make>> = {
  Adadelta: adadelta,
  Adafactor: adafactor,
  Adagrad: adagrad,
  Adam: adam(false),
  AdamW: adam(true),
  Adamax: adamax,
  ASGD: asgd,
  BertAdam: bertAdam,
  LAMB: lamb,
  Lion: lion,
  Muon: muon,
  NAdam: nadam,
  NovoGrad: novograd,
  RAdam: radam,
  RMSprop: rmsprop,
  Rprop: rprop,
  SGD: sgd,
};
