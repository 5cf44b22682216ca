"""`ToolContract`: what a tool is, apart from what runs it.

Pure data: a name, a description, an input model and an output type. The same contract can be served by a function, by a
Temporal activity or by an external system; `perdure.toolsets.contract_toolset` has the toolset that says which.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_ai.tools import ToolDefinition
from pydantic_core import PydanticSerializationError, to_jsonable_python

from perdure.contracts import Json, Target, unfit, validation_problems
from perdure.errors import DeclarationError, ToolContractViolation
from perdure.schemas import problems
from perdure.toolsets.json_types import check_readable, closed, lost_in, name_of, schema_of
from perdure.toolsets.target import metadata_of
from perdure.typed import check_fields

CONTRACT = "perdure_contract"
"""The key in a tool's metadata under which the version of its contract is."""
LONGEST_NAME = 64


@dataclass(frozen=True)
class ToolContract:
    """What a tool takes and gives, for the model and for whoever serves it.

    Raises `DeclarationError` for what can't be kept: a name that is no identifier, an empty description, a type that
    doesn't survive JSON.
    """

    name: str
    """An identifier of at most 64 ASCII letters, digits and `_`: it is part of activity types, and names a function."""
    description: str
    """For the model: what the tool does, when to use it and when not."""
    input_model: type[BaseModel]
    """The arguments. Unknown ones are refused unless its `model_config` says otherwise (`extra`); models inside it say
    so themselves."""
    output_model: Any = str
    """What a result is: a model, or any type that Pydantic writes as JSON."""
    version: str = ""
    """Free text, in the exported contract."""
    include_return_schema: bool | None = None
    """Whether the model is shown the schema of the result. `None`: as the agent says (`IncludeToolReturnSchemas`)."""

    def __post_init__(self) -> None:
        check_fields(self, own=("input_model",))
        self._check_name()
        if not self.description.strip():
            raise DeclarationError(f"{self._where}: it has no description, so a model can't know what it is for")
        model = cast("Any", self.input_model)
        if not isinstance(model, type) or not issubclass(model, BaseModel) or issubclass(model, RootModel):
            raise DeclarationError(f"{self._where}: input_model={model!r} must be a BaseModel with a field an argument")
        check_readable(self.input_schema.get("properties"), self._where, "handler")
        if lost := lost_in(model):
            raise DeclarationError(f"{self._where}: input_model doesn't survive JSON: {lost}")
        _ = self.fields, self.output_schema

    def _check_name(self) -> None:
        name = self.name
        if not (name.isascii() and name.isidentifier() and len(name) <= LONGEST_NAME) or keyword.iskeyword(name):
            raise DeclarationError(
                f"the contract's name {name!r} must be an identifier of at most {LONGEST_NAME} ASCII letters, digits "
                "and _, and no keyword of Python"
            )

    @property
    def _where(self) -> str:
        return f"contract {self.name!r}"

    @cached_property
    def input_schema(self) -> Json:
        """The JSON Schema of the arguments, as the model is shown it."""
        schema = schema_of(self.arguments, f"{self._where}: input_model", written=False)
        return {name: value for name, value in schema.items() if name not in ("title", "description")}

    @cached_property
    def output_schema(self) -> Json:
        """The JSON Schema of a result, as it is written."""
        return schema_of(self.output_model, f"{self._where}: output_model", written=True)

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields of the input model, by the name that an argument has in JSON."""
        found = {self._argument(name, field): name for name, field in self.input_model.model_fields.items()}
        if "" in found:
            raise DeclarationError(
                f"{self._where}: the field {found['']!r} is read from a path and not under a name of its own, so its "
                "value can't be written where it is read. Give it a plain alias"
            )
        return found

    def _argument(self, name: str, field: FieldInfo) -> str:
        alias = field.validation_alias if field.validation_alias is not None else field.alias
        first = alias if isinstance(alias, str) else getattr(alias, "choices", [name])[0] if alias else name
        return next((key for key in (first, name) if key in self.input_schema.get("properties", {})), "")

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The input model, which refuses unknown arguments where it doesn't say what becomes of them."""
        return closed(self.input_model)

    @cached_property
    def args_validator(self) -> Any:
        """Validates arguments, JSON or Python, into a dictionary by their names, as Pydantic AI asks of a tool."""
        model: Any = self.arguments
        unpacked: Any = Annotated[model, AfterValidator(self._arguments)]
        return TypeAdapter(unpacked).validator

    def _arguments(self, model: BaseModel) -> dict[str, Any]:
        return {name: getattr(model, field) for name, field in self.fields.items()} | (model.model_extra or {})

    def read_input(self, args: Mapping[str, Any]) -> BaseModel:
        """The input model of validated arguments, read from their JSON: what was planned is what runs."""
        plain = to_jsonable_python(dict(args), by_alias=True, round_trip=True, bytes_mode="utf8")
        return self.input_model.model_validate(plain)  # unknown arguments are refused before

    @cached_property
    def _output(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.output_model)

    def checked_output(self, value: Any) -> Any:
        """The JSON of a result. Raises `ToolContractViolation` where it isn't what the contract says."""
        try:
            validated = self._output.validate_python(value)
            written = self._output.dump_python(validated, mode="json", by_alias=True, warnings="error")
        except ValidationError as error:
            raise self._violated(validation_problems(error, "result")) from None
        except (PydanticSerializationError, ValueError) as error:
            raise self._violated(f"it can't be written as JSON: {' '.join(str(error).split())}") from None
        return self.checked_json(written)

    def checked_json(self, value: Any) -> Any:
        """A result that is JSON already, as it came from elsewhere. Raises `ToolContractViolation`."""
        if reason := unfit(value):
            raise self._violated(f"it must not {reason}")
        if wrong := problems(self.output_schema, value):
            raise self._violated(wrong)
        return value

    def _violated(self, problem: str) -> ToolContractViolation:
        version = f" {self.version}" if self.version else ""
        kind = name_of(self.output_model)
        return ToolContractViolation(
            f"what serves tool {self.name!r} broke its contract{version}: the result isn't {kind}: {problem}"
        )

    def tool_definition(self, target: Target | None = None) -> ToolDefinition:
        """The tool as a model is shown it. With `target`, its calls go there and not to a worker of the agent."""
        return ToolDefinition(
            name=self.name,
            description=self.description,
            parameters_json_schema=self.input_schema,
            metadata=self.metadata(target),
            return_schema=self.output_schema,
            include_return_schema=self.include_return_schema,
        )

    def metadata(self, target: Target | None = None) -> dict[str, Any]:
        """What the tool's definition says of the contract, beside what the model sees."""
        return {CONTRACT: {"name": self.name, "version": self.version}} | (
            metadata_of(target, self.output_schema) if target else {}
        )

    def export(self) -> Json:
        """The contract as JSON, for other languages and later comparison. Who serves it isn't in it."""
        return {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "input": self.input_schema,
            "output": self.output_schema,
        }
