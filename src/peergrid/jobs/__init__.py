"""Models carried out whole, with all their files: one run (`run_model`), or a survey of many (`run_survey`)."""
