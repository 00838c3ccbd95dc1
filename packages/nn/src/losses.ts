import {
  type BinaryLogitsOptions,
  type BinaryOptions,
  binaryCrossEntropy,
  binaryCrossEntropyWithLogits,
  type ClassOptions,
  type CrossEntropyOptions,
  type CtcOptions,
  cosineEmbeddingLoss,
  crossEntropy,
  ctcLoss,
  type GaussianNllOptions,
  gaussianNllLoss,
  type HuberOptions,
  hingeEmbeddingLoss,
  huberLoss,
  type KlDivOptions,
  klDiv,
  l1Loss,
  type MarginOptions,
  type MultiMarginOptions,
  marginRankingLoss,
  mseLoss,
  multilabelMarginLoss,
  multiMarginLoss,
  nllLoss,
  type PoissonNllOptions,
  poissonNllLoss,
  type ReductionOptions,
  type SmoothL1Options,
  smoothL1Loss,
  softMarginLoss,
  type Tensor,
  type TripletMarginOptions,
  tripletMarginLoss,
} from "@halfstep/tensor/functional";
import { requireArguments } from "./arguments.js";
import { Module } from "./module.js";

/** A loss function of `@halfstep/tensor` and its options, as a module. Tensors among the options are the caller's. */
export abstract class Loss<Options extends object> extends Module {
  readonly options: Options;

  constructor(options?: Options);
  constructor(options = {} as Options, ...surplus: readonly unknown[]) {
    super();
    requireArguments(this.call, options, ...surplus);
    this.options = options;
  }

  /** The call of the constructor, as `requireArguments` takes it. Losses that do not name their options may have any. */
  protected get call(): string {
    return "new Loss(options?)";
  }
}

/** Of logits [..., classes] and labels [...] (uint32), or probabilities [..., classes], in float32. */
export class CrossEntropyLoss extends Loss<CrossEntropyOptions> {
  protected override get call(): string {
    return "new CrossEntropyLoss({ weight?, ignoreIndex?, labelSmoothing?, reduction? })";
  }

  forward(logits: Tensor, target: Tensor): Tensor {
    return crossEntropy(logits, target, this.options);
  }
}

/** Of logarithms of probabilities [..., classes] and labels [...] (uint32). */
export class NLLLoss extends Loss<ClassOptions> {
  protected override get call(): string {
    return "new NLLLoss({ weight?, ignoreIndex?, reduction? })";
  }

  forward(logProbabilities: Tensor, labels: Tensor): Tensor {
    return nllLoss(logProbabilities, labels, this.options);
  }
}

/**
 * Connectionist temporal classification, as torch.nn.CTCLoss, in float32: of logarithms of probabilities [length, batch, classes], labels
 * [batch, labels], and the lengths of both, [batch]; all three are uint32 or int32.
 */
export class CTCLoss extends Loss<CtcOptions> {
  protected override get call(): string {
    return "new CTCLoss({ blank?, zeroInfinity?, reduction? })";
  }

  forward(
    logProbabilities: Tensor,
    targets: Tensor,
    inputLengths: Tensor,
    targetLengths: Tensor,
  ): Tensor {
    return ctcLoss(logProbabilities, targets, inputLengths, targetLengths, this.options);
  }
}

/** (input − target)², as torch.nn.MSELoss. */
export class MSELoss extends Loss<ReductionOptions> {
  protected override get call(): string {
    return "new MSELoss({ reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return mseLoss(input, target, this.options);
  }
}

/** |input − target|, as torch.nn.L1Loss. */
export class L1Loss extends Loss<ReductionOptions> {
  protected override get call(): string {
    return "new L1Loss({ reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return l1Loss(input, target, this.options);
  }
}

/** Quadratic near 0 and linear from beta on, as torch.nn.SmoothL1Loss. */
export class SmoothL1Loss extends Loss<SmoothL1Options> {
  protected override get call(): string {
    return "new SmoothL1Loss({ beta?, reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return smoothL1Loss(input, target, this.options);
  }
}

/** Quadratic near 0 and linear from delta on, as torch.nn.HuberLoss. */
export class HuberLoss extends Loss<HuberOptions> {
  protected override get call(): string {
    return "new HuberLoss({ delta?, reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return huberLoss(input, target, this.options);
  }
}

/** The Kullback-Leibler divergence, of log-probabilities and probabilities, as torch.nn.KLDivLoss. */
export class KLDivLoss extends Loss<KlDivOptions> {
  protected override get call(): string {
    return "new KLDivLoss({ logTarget?, reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return klDiv(input, target, this.options);
  }
}

/** Negative log-likelihood of counts, as torch.nn.PoissonNLLLoss. */
export class PoissonNLLLoss extends Loss<PoissonNllOptions> {
  protected override get call(): string {
    return "new PoissonNLLLoss({ logInput?, full?, eps?, reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return poissonNllLoss(input, target, this.options);
  }
}

/** Negative log-likelihood of numbers with a variance, as torch.nn.GaussianNLLLoss. */
export class GaussianNLLLoss extends Loss<GaussianNllOptions> {
  protected override get call(): string {
    return "new GaussianNLLLoss({ full?, eps?, reduction? })";
  }

  forward(input: Tensor, target: Tensor, variance: Tensor): Tensor {
    return gaussianNllLoss(input, target, variance, this.options);
  }
}

/** Of probabilities; refused under autocast, where {@link BCEWithLogitsLoss} is safe. */
export class BCELoss extends Loss<BinaryOptions> {
  protected override get call(): string {
    return "new BCELoss({ weight?, reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return binaryCrossEntropy(input, target, this.options);
  }
}

/** Binary cross-entropy of logits, as torch.nn.BCEWithLogitsLoss. */
export class BCEWithLogitsLoss extends Loss<BinaryLogitsOptions> {
  protected override get call(): string {
    return "new BCEWithLogitsLoss({ weight?, posWeight?, reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return binaryCrossEntropyWithLogits(input, target, this.options);
  }
}

/** log(1 + exp(−target · input)), as torch.nn.SoftMarginLoss. */
export class SoftMarginLoss extends Loss<ReductionOptions> {
  protected override get call(): string {
    return "new SoftMarginLoss({ reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return softMarginLoss(input, target, this.options);
  }
}

/** The input, or the margin less it, as torch.nn.HingeEmbeddingLoss. */
export class HingeEmbeddingLoss extends Loss<MarginOptions> {
  protected override get call(): string {
    return "new HingeEmbeddingLoss({ margin?, reduction? })";
  }

  forward(input: Tensor, target: Tensor): Tensor {
    return hingeEmbeddingLoss(input, target, this.options);
  }
}

/** Whether the right one of two scores is the larger by a margin, as torch.nn.MarginRankingLoss. */
export class MarginRankingLoss extends Loss<MarginOptions> {
  protected override get call(): string {
    return "new MarginRankingLoss({ margin?, reduction? })";
  }

  forward(a: Tensor, b: Tensor, target: Tensor): Tensor {
    return marginRankingLoss(a, b, target, this.options);
  }
}

/** Whether vectors point the same way, as torch.nn.CosineEmbeddingLoss. */
export class CosineEmbeddingLoss extends Loss<MarginOptions> {
  protected override get call(): string {
    return "new CosineEmbeddingLoss({ margin?, reduction? })";
  }

  forward(a: Tensor, b: Tensor, target: Tensor): Tensor {
    return cosineEmbeddingLoss(a, b, target, this.options);
  }
}

/** Whether an anchor is nearer to the positive than to the negative by a margin, as torch.nn.TripletMarginLoss. */
export class TripletMarginLoss extends Loss<TripletMarginOptions> {
  protected override get call(): string {
    return "new TripletMarginLoss({ margin?, p?, eps?, swap?, reduction? })";
  }

  forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    return tripletMarginLoss(anchor, positive, negative, this.options);
  }
}

/** Of scores [..., classes] and labels [...] (uint32). */
export class MultiMarginLoss extends Loss<MultiMarginOptions> {
  protected override get call(): string {
    return "new MultiMarginLoss({ margin?, p?, weight?, reduction? })";
  }

  forward(scores: Tensor, labels: Tensor): Tensor {
    return multiMarginLoss(scores, labels, this.options);
  }
}

/** Of scores [..., classes] and lists of labels [..., classes] (uint32), each ended by -1. */
export class MultiLabelMarginLoss extends Loss<ReductionOptions> {
  protected override get call(): string {
    return "new MultiLabelMarginLoss({ reduction? })";
  }

  forward(scores: Tensor, labels: Tensor): Tensor {
    return multilabelMarginLoss(scores, labels, this.options);
  }
}
