"""What the predictor service remembers beside observations: tokens, jobs, audit, problems."""

from kernelcast.records.service_state import AnswerRecord as AnswerRecord
from kernelcast.service_state.answers import AnswerFilter as AnswerFilter
from kernelcast.service_state.answers import make_id as make_id
from kernelcast.service_state.state import OBSERVATIONS_CHANGED as OBSERVATIONS_CHANGED
from kernelcast.service_state.state import TOKENS_CHANGED as TOKENS_CHANGED
from kernelcast.service_state.state import ServiceState as ServiceState
from kernelcast.service_state.state import find_state as find_state
from kernelcast.service_state.state import open_state as open_state
from kernelcast.training_data.store import AddedRows as AddedRows
from kernelcast.training_data.store import Store as Store
from kernelcast.training_data.store import StoreError as StoreError
