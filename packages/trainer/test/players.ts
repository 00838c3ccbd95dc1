import { GradScaler, type ScaledOptimizer, ScalerStateError } from "@halfstep/grad-scaler";
import { SGD } from "@halfstep/optim";
import {
  ampPrimitives,
  cpuRuntime,
  flatten,
  type Runtime,
  type Storage,
  type Tensor,
  type Variable,
} from "@halfstep/tensor";

export type Scaler = GradScaler<Storage, Tensor>;

/** One parameter that starts at 2, its SGD with a rate of 1, and losses whose gradient is a number. */
class Player {
  readonly w: Variable;
  readonly optimizer: SGD<Storage>;

  constructor(runtime: Runtime, name: string) {
    this.w = runtime.variable([2], [1], { requiresGrad: true, name });
    this.optimizer = new SGD(runtime.target, flatten([this.w]), { lr: 1 });
  }

  loss(gradient = 1): Tensor {
    return this.w.sum().mul(gradient);
  }
}

/** A runtime, scalers of its losses, and two players. */
export interface Players {
  readonly runtime: Runtime;
  scalerOf(): Scaler;
  readonly scaler: Scaler;
  readonly a: Player;
  readonly b: Player;
}

export function setUp(options: ConstructorParameters<typeof GradScaler>[1] = {}): Players {
  const runtime = cpuRuntime();
  const scalerOf = (): Scaler => new GradScaler(ampPrimitives(runtime), options);
  return {
    runtime,
    scalerOf,
    scaler: scalerOf(),
    a: new Player(runtime, "a"),
    b: new Player(runtime, "b"),
  };
}

/** The mistake that a call is refused for; "right" where it is not. */
export function mistakeOf(call: () => void): string {
  try {
    call();
    return "right";
  } catch (error) {
    if (error instanceof ScalerStateError) return (error as ScalerStateError).mistake;
    throw error;
  }
}

export type Calls = (context: Players) => void;

export const finish = (scaler: Scaler, optimizer: ScaledOptimizer<Storage>): void => {
  scaler.step(optimizer);
  scaler.update();
};
