"""Complete runs of models with all their files, as on the command line: one run, or a survey of many."""

from peergrid.jobs.run import ModelResult, run_model
from peergrid.jobs.survey import SurveyResult, run_survey

__all__ = ["ModelResult", "SurveyResult", "run_model", "run_survey"]
