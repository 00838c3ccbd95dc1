import { type DType, isDType } from "@halfstep/formats/dtypes";
import { dtypeNames, type SafetensorsDtype } from "@halfstep/safetensors";

const spelled = new Map<string, SafetensorsDtype>(
  Object.entries(dtypeNames).map(([stored, name]) => [name, stored as SafetensorsDtype]),
);

/** A dtype as safetensors files spell it. */
export const safetensorsDtypeOf = (dtype: DType): SafetensorsDtype =>
  spelled.get(dtype) as SafetensorsDtype;

/** The dtype of tensors that has a name in safetensors files; undefined where tensors have none such. */
export function dtypeOf(stored: SafetensorsDtype): DType | undefined {
  const name = dtypeNames[stored];
  return isDType(name) ? name : undefined;
}
