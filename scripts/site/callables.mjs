import {
  Comment,
  CommentTag,
  Converter,
  ParameterReflection,
  ReflectionFlag,
  ReflectionKind,
  SignatureReflection,
} from "typedoc";
import ts from "typescript";

/** A node of a type as written, unless it is an argument of a generic type, which only the checker knows. */
const written = ({ checker }, node) =>
  node === undefined || checker.getTypeAtLocation(node).flags & ts.TypeFlags.TypeParameter
    ? undefined
    : node;

/**
 * Ops are objects that can be called (`callable()` of tensor), and many functions are constants with a function type. TypeDoc treats them
 * as variables. This plugin shows them as functions with parameters, and ops in a group of their own.
 * @param {import("typedoc").Application} app
 */
export const showCallables = (app) =>
  app.converter.on(Converter.EVENT_CREATE_DECLARATION, (context, reflection) => {
    if (reflection.kind !== ReflectionKind.Variable) return;
    const { checker } = context;
    const symbol = context.getSymbolFromReflection(reflection);
    const declaration = symbol?.valueDeclaration;
    if (declaration === undefined) return;
    const type = checker.getTypeOfSymbolAtLocation(symbol, declaration);
    const signatures = type.getCallSignatures();
    if (signatures.length === 0 || type.getConstructSignatures().length > 0) return;

    const { comment } = reflection;
    reflection.kind = ReflectionKind.Function;
    delete reflection.type;
    delete reflection.defaultValue;
    reflection.setFlag(ReflectionFlag.Const, false);
    if (type.getProperty("castPolicy"))
      reflection.comment = new Comment(
        [],
        [new CommentTag("@group", [{ kind: "text", text: "Ops" }])],
      );
    else delete reflection.comment;
    reflection.signatures = signatures.map((signature) =>
      convertedSignature(context.withScope(reflection), reflection, signature, comment),
    );
  });

/** A call signature, documented by the comment of the constant that has it. */
function convertedSignature(context, reflection, signature, comment) {
  const node = signature.getDeclaration();
  const converted = new SignatureReflection(
    reflection.name,
    ReflectionKind.CallSignature,
    reflection,
  );
  converted.comment = comment?.clone();
  context.registerReflection(converted, undefined);
  const inside = context.withScope(converted);
  converted.parameters = signature.parameters.map((symbol) => {
    const { name, valueDeclaration } = symbol;
    const parameter = new ParameterReflection(name, ReflectionKind.Parameter, converted);
    context.registerReflection(parameter, symbol);
    const type = context.checker.getTypeOfSymbolAtLocation(symbol, valueDeclaration ?? node);
    const isOptional = valueDeclaration?.questionToken !== undefined;
    parameter.type = context.converter.convertType(
      inside.withScope(parameter),
      isOptional ? context.checker.getNonNullableType(type) : type,
      written(context, valueDeclaration?.type),
    );
    parameter.setFlag(ReflectionFlag.Optional, isOptional);
    parameter.setFlag(ReflectionFlag.Rest, valueDeclaration?.dotDotDotToken !== undefined);
    return parameter;
  });
  converted.type = context.converter.convertType(
    inside,
    signature.getReturnType(),
    written(context, node?.type),
  );
  return converted;
}
